/**
 * A running world of τ or τ²: the databases and tools of the agent and, in some domains, of the
 * user, with the originals' way of calling, refusing and keeping both sides in step.
 */
import type { Database } from "./database.js";
import { type Answer, answerText, callTool, type ToolDefinition, type Toolkit } from "./toolkit.js";
import { type Dict, PyError } from "./value.js";

/** Who calls a tool. */
export type Side = "assistant" | "user";

/** The rules of a domain. */
export interface Domain<A extends Database = Database, U extends Database = Database> {
  /** Such as `tau2-retail`. */
  readonly name: string;
  readonly edition: 1 | 2;
  readonly agent: Toolkit<A>;
  readonly user?: Toolkit<U>;
  /** Carries what changed on one side over to the other. */
  sync?(agent: A, user: U): void;
  /** The agent's database with a task's own data merged into it. */
  merge?(agent: A, data: Dict): A;
}

/** What a call gave. */
export interface CallResult {
  readonly content: string;
  readonly error: boolean;
  /** The class of Python's exception. */
  readonly errorType?: string;
}

/** State hashes of both sides; null where there is no user database. */
interface Hashes {
  readonly agent: string;
  readonly user: string | null;
}

/** A world in some state. */
export interface World {
  readonly domain: Domain;
  /** Calls a tool the way a conversation does: errors are texts. */
  call(side: Side, name: string, given: Dict): CallResult;
  /** Calls any function of a side, hidden ones too; errors are thrown. Syncs only if asked to. */
  run(side: Side, name: string, given: Dict, sync: boolean): Answer;
  /** Whether a tool changes the state; undefined if there is no such tool. */
  changes(side: Side, name: string): boolean | undefined;
  /** The tools that a side is offered. */
  names(side: Side): readonly string[];
  definition(side: Side, name: string): Pick<ToolDefinition<never>, "parameters">;
  sync(): void;
  /** Merges a task's own data into a side's database. */
  merge(side: Side, data: Dict): void;
  hashes(): Hashes;
  copy(): World;
}

/** A world with these databases. */
export function createWorld<A extends Database, U extends Database>(
  domain: Domain<A, U>,
  agentDb: A,
  userDb?: U,
): World {
  let agent = agentDb;
  let user = userDb;
  const sync = (): void => {
    if (user !== undefined) domain.sync?.(agent, user);
  };
  const kit = (side: Side): Toolkit<A> | Toolkit<U> | undefined =>
    side === "assistant" ? domain.agent : domain.user;
  const answer = (side: Side, name: string, given: Dict): Answer =>
    side === "assistant"
      ? callTool(domain.agent, agent, name, given)
      : callTool(domain.user!, user!, name, given);
  return {
    domain: domain as unknown as Domain,
    changes(side, name) {
      const found = kit(side)?.tools.get(name);
      return found === undefined || found.effect === "hidden"
        ? undefined
        : found.effect === "write";
    },
    names: (side) =>
      [...(kit(side)?.tools ?? [])].flatMap(([name, { effect }]) =>
        effect === "hidden" ? [] : [name],
      ),
    definition: (side, name) => kit(side)!.tools.get(name)!,
    call(side, name, given) {
      try {
        const found = kit(side)?.tools.get(name);
        if (domain.edition === 1 && found === undefined)
          return { content: `Unknown action ${name}`, error: false };
        if (kit(side) === undefined) throw new PyError("ValueError", "User tools not available");
        if (found === undefined || found.effect === "hidden")
          throw new PyError("ValueError", `Tool '${name}' not found.`);
        const content = answerText(answer(side, name, given));
        sync();
        return { content, error: false };
      } catch (error) {
        if (!(error instanceof PyError)) throw error;
        return { content: `Error: ${error.message}`, error: true, errorType: error.type };
      }
    },
    run(side, name, given, withSync) {
      if (kit(side)?.tools.get(name) === undefined)
        throw new PyError("ValueError", `there is no function ${name} on the side of the ${side}`);
      const result = answer(side, name, given);
      if (withSync) sync();
      return result;
    },
    sync,
    merge(side, data) {
      if (domain.merge === undefined || side === "user")
        throw new PyError("ValueError", `${domain.name} cannot merge data of the ${side}`);
      agent = domain.merge(agent, data);
      // As in the original: from here on both sides share one database.
      if (user !== undefined) user = agent as unknown as U;
    },
    hashes: () => ({ agent: agent.hash(), user: user?.hash() ?? null }),
    copy() {
      const copied = agent.copy() as A;
      const shared = (user as unknown) === agent;
      return createWorld(
        domain,
        copied,
        shared ? (copied as unknown as U) : (user?.copy() as U | undefined),
      );
    },
  };
}
