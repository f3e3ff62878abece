/** `svc kvstore`: works on the store of an API server. */
import { existsSync } from "node:fs";
import { builtinKinds } from "../../api/builtin.ts";
import { isPersisted } from "../../api/review-kind.ts";
import { type CommandInvocation, invokeCommand } from "../../flags/commands.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { countEncryption, type EncryptionCount } from "../../storage/encryption/encryption-status.ts";
import { openStore } from "../../storage/open.ts";
import { type Store, StoreError } from "../../storage/store.ts";
import { type kvstoreFlags, kvstoreProgram } from "./kvstore-flags.ts";

export async function run(argv: readonly string[]): Promise<number> {
  const invocation = await invokeCommand(kvstoreProgram, argv);
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  try {
    process.stdout.write(await runKvstoreCommand(invocation));
    return 0;
  } catch (error) {
    process.stderr.write(`svc kvstore: ${(error as Error).message}\n`);
    return 1;
  }
}

type Flags = CommandInvocation<typeof kvstoreFlags>["flags"];

/** Resolves with the text to print. Rejects with an error in one sentence, for the operator. */
export async function runKvstoreCommand(
  invocation: Pick<CommandInvocation<typeof kvstoreFlags>, "verb" | "args" | "flags">,
): Promise<string> {
  const { verb, args, flags } = invocation;
  if (verb === "encrypt-status") return await showEncryption(flags);
  const { maintainStore } = await import("./kvstore-maintenance.ts");
  return await maintainStore(verb, args, flags);
}

async function showEncryption(flags: Flags): Promise<string> {
  await using store = await open(flags);
  const counts = await countEncryption(store, flags["kvstore-prefix"], builtinKinds.filter(isPersisted));
  return flags.output === "json" ? `${JSON.stringify(counts, null, 2)}\n` : renderCounts(counts);
}

async function open(flags: Flags): Promise<Store> {
  const given = flags["kvstore-servers"];
  const urls = given.length > 0 ? given : [`level://${flags["data-dir"]}/kvstore`];
  const [url = ""] = urls;
  const directory = /^level:\/\/(.+)$/.exec(url)?.[1];
  // Opening a store creates its directory.
  if (directory !== undefined && !existsSync(decodeURIComponent(directory))) {
    throw new Error(`Cannot open ${url}: there is no such directory`);
  }
  if (url === "memory://") throw new Error(`Cannot open ${url}: expected level:///PATH or https://HOST:PORT`);
  const tls = {
    caFile: flags["kvstore-cafile"],
    certFile: flags["kvstore-certfile"],
    keyFile: flags["kvstore-keyfile"],
  };
  try {
    return await openStore({ urls, tls, clock: systemClock, log: silentLogger, compactionIntervalMs: 0 });
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "locked") throw error;
    throw new Error(`Cannot open ${url}: it is in use: stop the API server`, { cause: error });
  }
}

function renderCounts(counts: readonly EncryptionCount[]): string {
  const total = (rows: readonly EncryptionCount[]): number => rows.reduce((sum, { values }) => sum + values, 0);
  const rows = [
    ["RESOURCE", "PROVIDER", "KEY", "KEY ID", "VALUES"],
    ...counts.map(({ resource, provider, key, keyId = "", values }) => [
      resource,
      provider,
      printable(key),
      printable(keyId),
      String(values),
    ]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column]!))
      .join("   ")
      .trimEnd(),
  );
  const plain = total(counts.filter(({ provider }) => provider === "identity"));
  const all = total(counts);
  return `${lines.join("\n")}\n\n${all} values: ${all - plain} encrypted, ${plain} in plain text\n`;
}

/** Key IDs come from the store: what they contain must not control the terminal. */
function printable(text: string): string {
  if (text === "") return "-";
  const shown = JSON.stringify(text).slice(1, -1);
  return shown.replace(/[^\x20-\x7e]/g, "?");
}
