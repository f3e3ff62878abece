/** `svc doctor` and `svc agent doctor` beside a running cluster, and on broken parts of it. */
import { chmodSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";

interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly found: string;
}

interface Output {
  readonly code: number;
  readonly findings: readonly Finding[];
}

const { SVC_PROGRAM: selected = "bundle" } = process.env;
const commandLine: readonly string[] = programs[selected as keyof typeof programs];
const [program = "", ...args] = commandLine;

async function doctor(...words: readonly string[]): Promise<Output> {
  const { code, stdout, stderr } = await command(program, [...args, ...words, "--output=json"]);
  if (!stdout.startsWith("{")) throw new Error(`exit status ${code}: ${stdout}${stderr}`);
  return { code, findings: (JSON.parse(stdout) as Output).findings };
}

function find({ findings }: Output, id: string, text = ""): Finding | undefined {
  return findings.find((each) => each.id === id && each.found.includes(text));
}

function errorsOf({ findings }: Output): readonly string[] {
  return findings.filter(({ severity }) => severity === "error").map(({ id, found }) => `${id}: ${found}`);
}

/** The flags of the process of svc up. */
function flagsOf({ pid }: TestCluster): readonly string[] {
  // The bundle sets the title of its process, of words and blanks.
  const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split(/[\0 ]+/);
  return words.slice(words.indexOf("up") + 1).filter((word) => word !== "");
}

const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("svc doctor finds no errors in a running cluster, and those that are made", async (t) => {
    await using cluster = await TestCluster.create({ program: commandLine });
    await cluster.start("--stop-pods");
    const flags = flagsOf(cluster);
    const sound = await doctor("doctor", ...flags);
    t.same(errorsOf(sound), []);
    t.ok(sound.code < 2);
    for (const id of ["cri-version", "cri-runtime-ready", "cri-network-ready", "cri-sandbox-image", "cni-plugins"]) {
      t.match(find(sound, id), { severity: "ok" }, id);
    }
    for (const id of ["api-server-credentials", "api-server-node-access", "api-server-version", "clock-offset"]) {
      t.match(find(sound, id), { severity: "ok" }, id);
    }
    t.match(find(sound, "port-free", "--secure-port"), { severity: "ok", found: `(process ${cluster.pid})` });
    t.match(find(sound, "certificate-chain", "client certificate"), { severity: "ok" });
    t.match(find(sound, "certificate-names", "API server"), { severity: "ok" });

    const conflist = join(cluster.dataDir, "containerd/cni/10-svc.conflist");
    writeFileSync(`${conflist}.new`, "{");
    renameSync(`${conflist}.new`, conflist);
    chmodSync(join(cluster.dataDir, "pki/admin.key"), 0o640);
    const broken = await doctor("doctor", ...flags);
    t.equal(broken.code, 2);
    t.match(find(broken, "cni-config-valid"), { severity: "error", found: /10-svc\.conflist: / });
    t.match(find(broken, "key-mode", "admin.key"), { severity: "error" });

    // An agent with the same parts: its port belongs to svc up.
    const [node, socket] = [join(cluster.dataDir, "node.svcconfig"), join(cluster.runDir, "containerd.sock")];
    const port = flags.find((word) => word.startsWith("--agent-port="))?.replace("--agent-port=", "--port=") ?? "";
    const runtime = `--container-runtime-endpoint=unix://${socket}`;
    const agent = await doctor("agent", "doctor", `--svcconfig=${node}`, runtime, port, "--hostname-override=e2e");
    t.match(find(agent, "api-server-node-access"), { severity: "ok", found: "e2e is registered" });
    t.match(find(agent, "port-free", "--port"), { severity: "error", found: /process \d+ \(svc up\)/ });

    await cluster.stop();
    const stopped = await doctor("doctor", ...flags);
    t.match(find(stopped, "api-server-reachable"), { severity: "ok", found: "svc up does not run" });
    t.match(find(stopped, "port-free", "--secure-port"), { severity: "ok", found: /: free$/ });
  });
}
