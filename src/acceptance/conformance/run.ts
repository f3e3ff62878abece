/**
 * Runs the behaviours of the conformance list on a `svc up` in a network namespace of its own:
 *   node src/acceptance/conformance/run.ts [--sample] [WORD...]
 * WORDs select the behaviours whose names contain one of them.
 */
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { command, findMissingRequirement } from "../cluster/cluster.ts";

const missing = findMissingRequirement();
if (missing !== undefined) {
  console.error(`The behaviours cannot be shown here: ${missing}.`);
  process.exit(2);
}

const name = `svcf${randomBytes(3).toString("hex")}`;
const third = randomBytes(1)[0]!;
const ip = (...words: readonly string[]): void => void execFileSync("ip", words);
try {
  ip("netns", "add", name);
  ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name);
  ip("addr", "add", `10.92.${third}.1/24`, "dev", name);
  ip("link", "set", name, "up");
  ip("-n", name, "link", "set", "lo", "up");
  ip("-n", name, "addr", "add", `10.92.${third}.2/24`, "dev", "eth0");
  ip("-n", name, "link", "set", "eth0", "up");
  ip("-n", name, "route", "add", "default", "via", `10.92.${third}.1`);
  const program = fileURLToPath(new URL("run-behaviours.ts", import.meta.url));
  const words = [`--net=/run/netns/${name}`, process.execPath, program, ...process.argv.slice(2)];
  const child = spawn("nsenter", words, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, "exit");
  process.exitCode = code ?? 1;
} finally {
  await command("ip", ["netns", "delete", name]);
  await command("ip", ["link", "delete", name]);
}
