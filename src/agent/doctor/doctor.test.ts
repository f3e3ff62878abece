/** All checks together, the facts from servers, the command line and the output. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { systemClock } from "../../std/time/clock.ts";
import { ScriptedCri } from "../../testing/agent/scripted-cri.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { agentFlags } from "../flags.ts";
import { defaultAgentConfig } from "../options.ts";
import { agentSubject } from "./agent-subject.ts";
import { readApiServerFacts } from "./api-server.ts";
import { agentDoctor } from "./command.ts";
import { diagnose } from "./doctor.ts";
import { type Finding, finding } from "./finding.ts";
import { parseDoctorFlags } from "./flags.ts";
import { createHostReader, type HostReader } from "./host-reader.ts";
import { exitCode, renderFindings, renderJson, renderText, sortFindings } from "./report.ts";
import { readRuntimeFacts } from "./runtime-facts.ts";
import type { DoctorSubject } from "./subject.ts";

const MAIN = fileURLToPath(new URL("../../main.ts", import.meta.url));
const signal = new AbortController().signal;
const host = createHostReader();

async function subjectOf(directory: string, change: Partial<DoctorSubject> = {}): Promise<DoctorSubject> {
  const base = defaultAgentConfig("edge-7");
  const endpoint = `unix://${join(directory, "containerd.sock")}`;
  const config = {
    ...base,
    rootDir: join(directory, "root"),
    certDir: join(directory, "pki"),
    podLogsDir: join(directory, "logs"),
    runtime: { ...base.runtime, endpoint, imageEndpoint: endpoint },
  };
  return { ...(await agentSubject(config, "", [])), ...change };
}

function severities(findings: readonly Finding[]): Readonly<Record<string, string>> {
  return Object.fromEntries(findings.map(({ id, severity }) => [id, severity]));
}

t.test("diagnose() makes all checks of a machine without runtime and API server, and writes nothing", async (t) => {
  const directory = t.testdir({});
  const findings = await diagnose(await subjectOf(directory), { host, clock: systemClock });
  const found = severities(findings);
  t.match(found, { "cri-socket": "error", "api-server-reachable": "ok", "port-free": /./, "clock-year": "ok" });
  for (const id of ["kernel-version", "swap", "cgroup-version", "dns-servers", "disk-space", "other-distribution"]) {
    t.ok(id in found, id);
  }
  t.notOk("check-failed" in found);
  t.same(await host.list(directory), []);
});

t.test("a check that hangs or fails does not stop the others", async (t) => {
  const hanging: HostReader = {
    ...host,
    statfs: () => new Promise(() => {}),
    run: () => Promise.reject(new Error("no more processes")),
  };
  const began = systemClock.monotonic();
  const findings = await diagnose(await subjectOf(t.testdir({})), {
    host: hanging,
    clock: systemClock,
    timeoutMs: 500,
  });
  t.ok(systemClock.monotonic() - began < 20_000, "bounded");
  const failed = findings.filter(({ id }) => id === "check-failed").map(({ found }) => found);
  t.equal(failed.filter((text) => text.includes("no result within 500 ms")).length, 2, "the directories");
  t.ok(failed.some((text) => text.includes("no more processes")));
  t.match(severities(findings), { "kernel-version": "ok", "cri-socket": "error", "dns-servers": /./ });
});

async function listen(server: Server, path?: string): Promise<number> {
  server.listen(path === undefined ? { port: 0, host: "127.0.0.1" } : { path });
  await once(server, "listening");
  return path === undefined ? (server.address() as AddressInfo).port : 0;
}

function answers(bodies: Readonly<Record<string, readonly [number, unknown]>>, date?: string): RequestListener {
  return (request, response) => {
    const [status, body] = bodies[request.url ?? ""] ?? [404, {}];
    response.writeHead(status, { "content-type": "application/json", ...(date === undefined ? {} : { date }) });
    response.end(JSON.stringify(body));
  };
}

const review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const userInfo = { username: "system:node:edge-7", groups: ["system:nodes"] };

t.test("readApiServerFacts() reads version, user, node and clock, and prints no token", async (t) => {
  const date = new Date(systemClock.now() - 3_600_000).toUTCString();
  const bodies = {
    "/version": [200, { gitVersion: "v1.33.4" }],
    [review]: [201, { status: { userInfo } }],
    "/api/v1/nodes/edge-7": [200, { status: { nodeInfo: { machineID: "a1" } } }],
  } as const;
  const server = createHttpServer(answers(bodies, date));
  const port = await listen(server);
  t.teardown(() => server.close());
  const directory = t.testdir({});
  const svcconfig = join(directory, "svcconfig");
  const token = "very-secret-token";
  await writeKubeconfig(svcconfig, { server: `http://127.0.0.1:${port}`, cluster: "c", user: "u", token });
  const facts = await readApiServerFacts(svcconfig, "", "edge-7", systemClock, signal);
  t.match(facts, { version: "v1.33.4", user: "system:node:edge-7", nodeStatus: 200, machineId: "a1" });
  t.ok(Math.abs((facts.offsetMs ?? 0) + 3_600_000) < 60_000, `${facts.offsetMs} ms`);
  const subject = await subjectOf(directory);
  const findings = await diagnose(
    { ...subject, config: { ...subject.config, svcconfig } },
    { host, clock: systemClock },
  );
  t.match(severities(findings), { "api-server-credentials": "ok", "clock-offset": "error" });
  t.notMatch(renderText(findings, true) + renderJson("svc agent", findings, undefined), token);
});

t.test("readApiServerFacts() distinguishes what can go wrong", async (t) => {
  const directory = t.testdir({ damaged: "clusters: [" });
  const now = systemClock.now();
  const [ca, other] = [await createCa("ca", 1, now), await createCa("other", 1, now)];
  const leaf = await issueCertificate(
    ca,
    { commonName: "server", usages: ["server"], days: 1, alternativeNames: ["127.0.0.1"] },
    now,
  );
  const refusing = createHttpsServer({ ...leaf }, answers({ "/version": [401, {}], [review]: [401, {}] }));
  const accepted: Socket[] = [];
  const silent = createNetServer((socket) => accepted.push(socket.on("error", () => {})));
  t.teardown(() => {
    for (const server of [refusing, silent]) server.close();
    for (const socket of accepted) socket.destroy();
  });
  const [port, silentPort] = [await listen(refusing), await listen(silent)];
  const read = async (server: string, authority: string, until = signal) => {
    const path = join(directory, "svcconfig");
    await writeKubeconfig(path, { server, cluster: "c", user: "u", token: "t", ca: authority });
    return await readApiServerFacts(path, "", "edge-7", systemClock, until);
  };
  const url = `https://127.0.0.1:${port}`;
  t.match(await read(url, ca.cert), { connectProblem: undefined, user: undefined, nodeStatus: 404 });
  t.match(await read(url, other.cert), { connectProblem: { kind: "tls" } });
  const refused = await read(`https://127.0.0.1:${await freePort()}`, ca.cert);
  t.match(refused, { connectProblem: { kind: "network", text: /ECONNREFUSED/ } });
  const late = AbortSignal.timeout(300);
  t.match(await read(`https://127.0.0.1:${silentPort}`, ca.cert, late), {
    connectProblem: { kind: "network", text: "no answer in time" },
  });
  const damaged = await readApiServerFacts(join(directory, "damaged"), "", "edge-7", systemClock, signal);
  t.match(damaged.configProblem, /damaged/);
  const missing = join(directory, "missing");
  t.match(await readApiServerFacts(missing, "", "edge-7", systemClock, signal), { configProblem: /missing/ });
  t.match(await readApiServerFacts(missing, url, "edge-7", systemClock, signal), {
    connectProblem: undefined,
    nodeStatus: undefined,
  });
});

t.test("readRuntimeFacts() reads settings and images, and survives a runtime that does not answer", async (t) => {
  // Paths of sockets have at most 107 characters.
  const directory = mkdtempSync(join(tmpdir(), "svc-doctor-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const config = JSON.stringify({ sandboxImage: "pause:3", cni: { binDir: "/b", confDir: "/c" } });
  const conditions = [{ type: "RuntimeReady", status: true }];
  await using cri = new ScriptedCri(join(directory, "cri.sock"), {
    runtime: {
      version: async () => ({ runtimeName: "scripted", runtimeApiVersion: "v1" }),
      status: async () => ({ status: { conditions }, info: { config } }),
    },
    images: {
      imageStatus: async ({ image }) => (image?.image === "a:1" ? { image: { id: "1" } } : {}),
      imageFsInfo: async () => ({ imageFilesystems: [{ fsId: { mountpoint: "/images" } }] }),
    },
  });
  await cri.start();
  const read = (endpoint: string, until = signal) =>
    readRuntimeFacts({ endpoint, imageEndpoint: endpoint }, ["a:1", "b:2"], host, systemClock, until);
  t.match(await read(cri.endpoint), {
    version: { runtimeName: "scripted" },
    settings: { sandboxImage: "pause:3", cniConfDir: "/c" },
    hasSandboxImage: false,
    imageDirectories: ["/images"],
    missingImages: ["b:2"],
    error: undefined,
  });
  const accepted: Socket[] = [];
  const silent = createNetServer((socket) => accepted.push(socket.on("error", () => {}).resume()));
  const path = join(directory, "silent.sock");
  await listen(silent, path);
  t.teardown(() => {
    silent.close();
    for (const socket of accepted) socket.destroy();
  });
  t.match(await read(`unix://${path}`, AbortSignal.timeout(300)), { version: undefined, error: /./ });
  writeFileSync(join(directory, "file"), "");
  t.match(await read(`unix://${directory}/file`), { socket: { kind: "file" }, error: undefined });
  t.match(await read(`unix://${directory}/missing`), { socket: undefined });
});

t.test("parseDoctorFlags() separates the flags of doctor from those of the program", async (t) => {
  const parse = (...argv: string[]) => {
    const { flags, rest } = parseDoctorFlags(argv, agentFlags);
    return [flags.output, flags.verbose, flags.timeout, rest];
  };
  t.same(parse(), ["text", false, 10_000, []]);
  t.same(parse("-v"), ["text", true, 10_000, []]);
  t.same(parse("-v", "4"), ["text", false, 10_000, ["-v", "4"]]);
  t.same(parse("-v", "--output", "json"), ["json", true, 10_000, []]);
  t.same(parse("-o", "json", "--timeout=2s", "--port=1"), ["json", false, 2000, ["--port=1"]]);
  t.same(parse("--root_dir", "-v", "--verbose"), ["text", true, 10_000, ["--root_dir", "-v"]]);
  t.throws(() => parse("--output=yaml"), /--output="yaml": must be one of/);
  t.throws(() => parse("--output"), /--output/);
});

t.test("the report sorts by severity, and its exit status is that of the worst finding", async (t) => {
  const [ok, warning, error] = [
    finding("swap", "ok", "off"),
    finding("kernel-version", "warning", "3.10.0"),
    finding("port-free", "error", "--port 10250: used by \u001b[31mx\n"),
  ];
  t.same([[], [ok], [ok, warning], [warning, error, ok]].map(exitCode), [0, 0, 1, 2]);
  const sorted = sortFindings([ok, warning, error]);
  t.same(sorted, [error, warning, ok]);
  t.equal(
    renderText(sorted, false),
    [
      "ERROR    port-free       --port 10250: used by  [31mx",
      "         The start fails because the address is in use.",
      "         To do: Stop the other process, or choose another port by the flag.",
      "",
      "WARNING  kernel-version  3.10.0",
      "         Container runtimes and network plugins are not tested with a kernel this old.",
      "         To do: Install kernel 4.19 or newer.",
      "",
      "1 error, 1 warning, 1 ok (-v lists them)",
      "",
    ].join("\n"),
  );
  t.match(renderText(sorted, true), /^ok {7}swap +off\n1 error, 1 warning, 1 ok\n$/m);
  t.equal(renderText([ok], false), "0 errors, 0 warnings, 1 ok (-v lists them)\n");
  const json = JSON.parse(renderJson("svc agent", sorted, undefined)) as { findings: readonly object[] };
  t.match(json, { program: "svc agent", exitStatus: 2, findings: [{ id: "port-free", area: "ports", remedy: /./ }] });
  t.same(json.findings.at(-1), { id: "swap", area: "machine", severity: "ok", found: "off" });
});

interface Output {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function svc(...args: readonly string[]): Promise<Output> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

t.test("svc agent doctor takes the flags and files of the agent", async (t) => {
  const directory = t.testdir({
    "agent.yaml": "apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\nport: 1\nfailSwapOn: false\n",
  });
  const endpoint = `--container-runtime-endpoint=unix://${directory}/no.sock`;
  const flags = [`--config=${directory}/agent.yaml`, endpoint, `--root-dir=${directory}/root`];
  const { code, stdout, stderr } = await svc("agent", "doctor", "-o", "json", ...flags);
  t.equal(code, 2, stderr);
  const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
  t.match(
    findings.find(({ id }) => id === "cri-socket"),
    { severity: "error", found: `${directory}/no.sock does not exist, or cannot be accessed` },
  );
  t.ok(findings.some(({ id, found }) => id === "port-free" && found.startsWith("--port 1: ")));
  t.same(await host.list(directory), ["agent.yaml"], "nothing is written");
  const wrong = await svc("agent", "doctor", "--max-pods=many");
  t.match(wrong, { code: 2, stdout: "", stderr: /--max-pods="many"/ });
  const help = await svc("agent", "doctor", "--help");
  t.match(help, { code: 0, stdout: /svc agent doctor \[flags\] \[flags of svc agent\][\s\S]*--output/ });
});

t.test("the subject of svc agent doctor is what the flags configure", async (t) => {
  const subject = await agentDoctor.subject(["--port=1", "--healthz-port=0", "--root-dir=/r", "--node-ip=192.0.2.2"]);
  t.match(subject, {
    listeners: [{ flag: "--port", port: 1 }, {}, { flag: "--healthz-port", port: 0 }],
    directories: [{ path: "/r" }, {}],
    certificates: [{ name: "serving certificate", names: ["192.0.2.2"], isCreated: true }],
  });
  const dns = ["--serve-dns", "--cluster-dns=10.96.0.10", "--cluster-domain=cluster.local", "--enable-server=false"];
  t.match(await agentDoctor.subject(dns), { listeners: [{ port: 53, address: "10.96.0.10" }] });
  t.match(await agentDoctor.subject(["--version"]), { stdout: /^agent v1/, stderr: "" });
  t.match(await agentDoctor.subject(["--port=x"]), { stdout: "", stderr: /--port="x"/ });
});

t.test("a machine that has not joined yet checks the way to the API server that it will join", async (t) => {
  const server = createHttpServer(answers({ "/version": [200, { gitVersion: "v1.33.0" }] }));
  const port = await listen(server);
  t.teardown(() => server.close());
  const directory = t.testdir({});
  const join = async (url: string) =>
    severities(await diagnose(await subjectOf(directory, { join: url }), { host, clock: systemClock }));
  t.match(await join(`http://127.0.0.1:${port}`), { "api-server-reachable": "ok", "api-server-version": "ok" });
  t.match(await join(`http://127.0.0.1:${await freePort()}`), { "api-server-reachable": "error" });
});

t.test("docs/doctor.md is the output of `make docs`", async (t) => {
  t.equal(readFileSync(new URL("../../../docs/doctor.md", import.meta.url), "utf8"), renderFindings());
});
