import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import t from "tap";
import { until } from "../testing/std/until.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
const skip = process.platform === "linux" && process.getuid?.() === 0 ? false : "only root runs nodes, on Linux";

t.test("the agent notifies systemd of its start, its health and its end", { skip }, async (t) => {
  const directory = t.testdir();
  const sent = join(directory, "sent");
  writeFileSync(join(directory, "systemd-notify"), `#!/bin/sh\necho "$@" >> ${sent}\n`, { mode: 0o755 });
  const flags = {
    "root-dir": join(directory, "root"),
    "cert-dir": join(directory, "pki"),
    "container-runtime-endpoint": `unix://${join(directory, "missing.sock")}`,
    "hostname-override": "notifying",
    "enable-server": "false",
    "healthz-port": "0",
    "fail-swap-on": "false",
    "fail-cgroupv1": "false",
    "cgroups-per-qos": "false",
    "enforce-node-allocatable": "",
    "make-iptables-util-chains": "false",
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const env = {
    ...process.env,
    PATH: `${directory}:${process.env.PATH}`,
    NOTIFY_SOCKET: join(directory, "notify"),
    WATCHDOG_USEC: "200000",
  };
  const program = spawn(process.execPath, [MAIN, "agent", ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  t.teardown(() => program.kill("SIGKILL"));
  let output = "";
  for (const stream of [program.stdout, program.stderr]) {
    stream.on("data", (piece: Buffer) => {
      output += piece.toString();
    });
  }
  const ended = once(program, "exit");
  const text = () => (existsSync(sent) ? readFileSync(sent, "utf8") : "");
  const isHealthy = () => /READY=1.*WATCHDOG=1.*WATCHDOG=1/s.test(text());
  await until("two watchdog notifications", isHealthy, { timeoutMs: 60_000, wait: () => setTimeout(20) }).catch(
    (error: unknown) => t.fail(`${String(error)}: ${text()}${output}`),
  );
  program.kill("SIGTERM");
  t.same(await ended, [0, null], output);
  t.match(text(), /STOPPING=1/);
});
