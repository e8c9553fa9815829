/** The domains, opened from a data folder: each gives fresh worlds in their pristine state. */
import { EnvError } from "@pawl/core/envs/env.js";
import { airlineTools } from "./airline.js";
import {
  type RecordDatabase,
  type Records,
  recordDatabase,
  type TableDatabase,
  tableDatabase,
} from "./database.js";
import { type DomainFiles, domainFiles } from "./files.js";
import { mergeMock, mockAgent, mockDb, mockUser, mockUserDb } from "./mock.js";
import { build } from "./model.js";
import { createPhone, type Phone } from "./phone.js";
import { retailTools } from "./retail.js";
import { retailDb } from "./retail-models.js";
import {
  awaitingPayment,
  type Carrier,
  createCarrier,
  customerByPhone,
  isExceeded,
  lineByPhone,
  payBill,
  telecomAgent,
} from "./telecom-agent.js";
import { paymentRequest, telecomDb, telecomUserDb } from "./telecom-models.js";
import { telecomUser } from "./telecom-user.js";
import { type Dict, dict, isDict, truthy } from "./value.js";
import { createWorld, type Domain, methodsOf, type Toolkit, type World } from "./world.js";

/** The rules of the domain. */
const telecom: Domain<Carrier, Phone> = {
  name: "tau2-telecom",
  edition: 2,
  agent: telecomAgent,
  user: telecomUser,
  sync,
};

/** What the carrier changed reaches the phone, and payments reach the carrier. */
function sync(carrier: Carrier, { around }: Phone): void {
  const number = around.get("phone_number")!;
  if (number === null) return;
  const line = lineByPhone(carrier, number);
  around.set("line_active", line.get("status") === "Active");
  around.set("roaming_allowed", truthy(line.get("roaming_enabled")!));
  around.set("mobile_data_usage_exceeded", isExceeded(carrier, line));
  const request = around.get("payment_request")!;
  if (isDict(request) && truthy(request.get("paid")!)) {
    payBill(carrier, request.get("bill_id")!);
    around.set("payment_request", null);
  }
  if (around.get("payment_request") !== null) return;
  const bill = awaitingPayment(carrier, customerByPhone(carrier, number))[0];
  if (bill === undefined) return;
  const values = dict({ bill_id: bill.get("bill_id")!, amount_due: bill.get("total_due")! });
  around.set("payment_request", build(paymentRequest, values));
}

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
