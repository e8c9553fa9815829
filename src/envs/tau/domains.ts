/** The domains, opened from a data folder: each gives fresh worlds in their pristine state. */
import { EnvError } from "../env.js";
import { airlineTools } from "./airline.js";
import {
  type RecordDatabase,
  recordDatabase,
  type TableDatabase,
  tableDatabase,
} from "./database.js";
import { type DomainFiles, domainFiles } from "./files.js";
import { mergeMock, mockAgent, mockDb, mockUser, mockUserDb } from "./mock.js";
import { createPhone } from "./phone.js";
import { retailTools } from "./retail.js";
import { retailDb } from "./retail-models.js";
import type { Records } from "./table-hash.js";
import { telecom } from "./telecom.js";
import { createCarrier } from "./telecom-agent.js";
import { telecomDb, telecomUserDb } from "./telecom-models.js";
import { methodsOf, type Toolkit } from "./toolkit.js";
import { type Dict, isDict } from "./value.js";
import { createWorld, type Domain, type World } from "./world.js";

/** The domains by name. */
export const domainNames = [
  "tau1-retail",
  "tau1-airline",
  "tau2-retail",
  "tau2-telecom",
  "tau2-mock",
] as const;

/** A domain's name. */
export type DomainName = (typeof domainNames)[number];

/** An opened domain. */
export interface OpenDomain {
  readonly name: DomainName;
  readonly edition: 1 | 2;
  readonly files: DomainFiles;
  /** The pristine world itself, to ask about tools; it is not acted in. */
  readonly tools: Pick<World, "changes" | "names" | "definition">;
  /** A world in its pristine state; its records are shared until they are changed. */
  fresh(): World;
}

/** Opens a domain of a data folder. */
export function openDomain(data: string, name: DomainName): OpenDomain {
  const edition = name.startsWith("tau1") ? 1 : 2;
  const files = domainFiles(data, edition, name.slice(5));
  const pristine = OPENERS[name](files);
  pristine.sync();
  return { name, edition, files, tools: pristine, fresh: () => pristine.copy() };
}

const OPENERS: Readonly<Record<DomainName, (files: DomainFiles) => World>> = {
  "tau1-retail": (files) =>
    tau1World("tau1-retail", files, ["orders", "products", "users"], retailTools(1)),
  "tau1-airline": (files) =>
    tau1World("tau1-airline", files, ["flights", "reservations", "users"], airlineTools),
  "tau2-retail": (files) => {
    const domain: Domain<TableDatabase> = {
      name: "tau2-retail",
      edition: 2,
      agent: methodsOf("RetailTools", retailTools(2)),
    };
    const tables = files.model(retailDb, "db.json") as unknown as Map<string, Records>;
    return createWorld(domain, tableDatabase(tables, "json"));
  },
  "tau2-telecom": (files) =>
    createWorld(
      telecom,
      createCarrier(files.model(telecomDb, "db.toml")),
      createPhone(files.model(telecomUserDb, "user_db.toml")),
    ),
  "tau2-mock": (files) => {
    const domain: Domain<RecordDatabase, RecordDatabase> = {
      name: "tau2-mock",
      edition: 2,
      agent: mockAgent,
      user: mockUser,
      merge: mergeMock,
    };
    return createWorld(
      domain,
      recordDatabase(files.model(mockDb, "db.json")),
      recordDatabase(files.model(mockUserDb, "user_db.json")),
    );
  },
};

function tau1World(
  name: DomainName,
  files: DomainFiles,
  tables: readonly string[],
  tools: Toolkit<TableDatabase>["tools"],
): World {
  const records = tables.map((table) => {
    const found = files.record(`${table}.json`, `data/${table}.json`);
    for (const [id, record] of found)
      if (!isDict(record))
        throw new EnvError(`${files.folder}/${table}.json: ${id}: expected an object`);
    return [table, found as Map<string, Dict>] as const;
  });
  // Each tool is a class of its own there.
  const callee = (tool: string): string =>
    `${tool.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}.invoke`;
  const domain: Domain<TableDatabase> = { name, edition: 1, agent: { callee, tools } };
  return createWorld(domain, tableDatabase(new Map(records), "tuple"));
}
