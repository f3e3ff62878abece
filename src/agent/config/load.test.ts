import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { FlagError } from "../../flags/flag.ts";
import { decode } from "../../schema/decode/decode.ts";
import { duration } from "../../schema/define.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { parseAgentCommandLine } from "./command-line.ts";
import { configFields, fromJson, getDefault, isEffective, toJson } from "./fields.ts";
import { DROP_IN_VARIABLE, loadAgentConfig } from "./load.ts";
import { findOrigin, formatSource } from "./origin.ts";
import { printConfig } from "./print.ts";
import { parseConfig } from "./read.ts";
import { svcletConfiguration } from "./schema.ts";

const header = "apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n";
const kubernetesHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

const lines = (...all: readonly string[]): string => `${all.join("\n")}\n`;

/** Writes files to a directory of the test; returns the directory. */
function files(t: Test, contents: Readonly<Record<string, string>>): string {
  const directory = t.testdir();
  for (const [name, text] of Object.entries(contents)) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return directory;
}

function problemsOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}): readonly string[] {
  try {
    loadAgentConfig(argv, env);
  } catch (error) {
    if (error instanceof FlagError) return error.problems;
    throw error;
  }
  return [];
}

t.test("loadAgentConfig() without a file uses the flags' defaults", async (t) => {
  const { config, flags, origins } = loadAgentConfig([], {});
  t.equal(config.maxPods, 110);
  t.equal(flags["sync-frequency"], 60_000);
  t.equal(flags["anonymous-auth"], true);
  t.equal(flags["read-only-port"], 10_255);
  t.equal(flags["authorization-mode"], "AlwaysAllow");
  t.same(config.evictionHard, flags["eviction-hard"]);
  t.equal(formatSource((findOrigin(origins, ["maxPods"]) as { source: { kind: "default" } }).source), "default");
});

t.test("loadAgentConfig() gives fields of a gate their default while it is on", async (t) => {
  const read = (...gates: readonly string[]) => loadAgentConfig([`--feature-gates=${gates.join(",")}`], {}).config;
  t.match(read("KubeletEnsureSecretPulledImages=true", "KubeletCrashLoopBackOffMax=true"), {
    imagePullCredentialsVerificationPolicy: "NeverVerifyPreloadedImages",
    crashLoopBackOff: { maxContainerRestartPeriod: "5m0s" },
  });
  const { imagePullCredentialsVerificationPolicy: policy, crashLoopBackOff } = read("AllAlpha=false");
  t.same([policy, crashLoopBackOff], [undefined, undefined]);
});

t.test("loadAgentConfig() with a file uses the file's defaults, which are stricter", async (t) => {
  const directory = files(t, { "agent.yaml": header });
  const { flags } = loadAgentConfig([`--config=${directory}/agent.yaml`], {});
  t.equal(flags["anonymous-auth"], false);
  t.equal(flags["authentication-token-webhook"], true);
  t.equal(flags["authorization-mode"], "Webhook");
  t.equal(flags["read-only-port"], 0);
});

t.test(
  "loadAgentConfig() lets drop-ins override the file, in the order of names, and flags override both",
  async (t) => {
    const directory = files(t, {
      "agent.yaml":
        header +
        lines(
          "logging:",
          "  verbosity: 1",
          "  flushFrequency: 3s",
          "  vmodule:",
          "  - {filePattern: a, verbosity: 1}",
          "  - {filePattern: b, verbosity: 2}",
          "featureGates:",
          "  LoggingAlphaOptions: true",
          "  LoggingBetaOptions: false",
        ),
      "d/20.conf": `${header}logging:\n  verbosity: 3\n`,
      "d/10.conf":
        kubernetesHeader +
        lines(
          "logging:",
          "  verbosity: 2",
          "  vmodule:",
          "  - {filePattern: c, verbosity: 3}",
          "featureGates:",
          "  LoggingBetaOptions: true",
        ),
      "d/30.conf~": "not: yaml: at all",
      "d/40.conf/inner.conf": "a directory is passed over",
      "d/README": "so is this",
    });
    const args = [`--config=${directory}/agent.yaml`, `--config-dir=${directory}/d`];
    const merged = loadAgentConfig(args, {});
    t.equal(merged.flags.v, 3);
    t.equal(merged.flags["log-flush-frequency"], 3000);
    t.same(merged.flags.vmodule, [{ pattern: "c", level: 3 }]);
    t.same(merged.config.featureGates, { LoggingAlphaOptions: true, LoggingBetaOptions: true });
    t.equal(merged.gates.enabled("LoggingAlphaOptions"), true);

    const over = loadAgentConfig([...args, "-v=9", "--feature-gates=LoggingAlphaOptions=false"], {});
    t.equal(over.flags.v, 9);
    t.same(over.config.featureGates, { LoggingAlphaOptions: false, LoggingBetaOptions: true });
    t.equal(over.config.logging?.verbosity, 9);
  },
);

t.test("loadAgentConfig() reads the drop-in directory from the environment, unless the flag is set", async (t) => {
  const directory = files(t, {
    "a/1.conf": `${header}logging: {verbosity: 1}\n`,
    "b/1.conf": `${header}logging: {verbosity: 2}\n`,
  });
  t.equal(loadAgentConfig([], { [DROP_IN_VARIABLE]: `${directory}/a` }).flags.v, 1);
  t.equal(loadAgentConfig([`--config-dir=${directory}/b`], { [DROP_IN_VARIABLE]: `${directory}/a` }).flags.v, 2);
  t.match(problemsOf([`--config-dir=${directory}/none`]), [/^--config-dir=.*cannot be read/]);
});

t.test("loadAgentConfig() removes a field of the file that a drop-in sets to null", async (t) => {
  const directory = files(t, {
    "agent.yaml": `${header}logging: {verbosity: 5}\nfeatureGates: {WatchList: true}\n`,
    "d/1.conf": `${header}logging: {verbosity: null}\nfeatureGates: null\n`,
  });
  const { flags, config } = loadAgentConfig([`--config=${directory}/agent.yaml`, `--config-dir=${directory}/d`], {});
  t.equal(flags.v, 0);
  t.same(config.featureGates ?? {}, {});
});

t.test("loadAgentConfig() reports file, line and field of every problem", async (t) => {
  const directory = files(t, {
    "agent.yaml":
      header +
      lines("maxPod: 3", "maxPods: many", "logging:", "  verbosty: 3", "syncFrequency: 1m", "syncFrequency: 2m"),
    "d/1.conf": `${header}registryBurst: [1]\n`,
  });
  const file = `${directory}/agent.yaml`;
  t.same(problemsOf([`--config=${file}`, `--config-dir=${directory}/d`]), [
    `${file}:8: field syncFrequency is set twice`,
    `${file}:3: unknown field maxPod: did you mean maxPods?`,
    `${file}:6: unknown field logging.verbosty`,
    `${file}:4: field maxPods must be of type int32, not string`,
    `${directory}/d/1.conf:3: field registryBurst must be of type int32, not array`,
  ]);
});

t.test("loadAgentConfig() validates values of the file like those of flags", async (t) => {
  const directory = files(t, {
    "agent.yaml":
      header +
      lines(
        "logging:",
        "  format: xml",
        "  flushFrequency: 0s",
        "  vmodule: []",
        "featureGates:",
        "  Nope: true",
        "  MemoryManager: false",
      ),
  });
  const file = `${directory}/agent.yaml`;
  t.same(problemsOf([`--config=${file}`]), [
    `${file}:4: field logging.format: "xml" must be one of text, json`,
    `${file}:8: unknown feature gate Nope`,
    `${file}:9: cannot set feature gate MemoryManager to false, feature is locked to true`,
  ]);
});

t.test("loadAgentConfig() requires the feature gate of a field", async (t) => {
  const directory = files(t, {
    "agent.yaml": header + lines("logging:", "  options:", "    text: {splitStream: true}"),
  });
  const file = `${directory}/agent.yaml`;
  t.same(problemsOf([`--config=${file}`]), [
    `${file}:5: field logging.options.text.splitStream: needs feature gate LoggingAlphaOptions`,
  ]);
  t.same(problemsOf([`--config=${file}`, "--feature-gates=LoggingAlphaOptions=true"]), []);
  t.match(problemsOf(["--log-text-split-stream"]), [/flag --log-text-split-stream.*LoggingAlphaOptions/]);
});

t.test("parseConfig() refuses other kinds", async (t) => {
  const problem = (text: string) => parseConfig(text, "f", "file").problems.join("\n");
  t.match(problem(""), /f: the file is empty/);
  t.match(problem("- 1\n"), /f: not an object/);
  t.match(problem("apiVersion: v1\nkind: Pod\n"), /f:2: apiVersion "v1" and kind "Pod" are not those/);
  t.match(problem("maxPods: 3\n"), /must begin with apiVersion: svclet.config.svc.io\/v1beta1/);
  t.match(problem("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: SvcletConfiguration\n"), /are not those/);
  t.match(problem(`${header}---\n${header}`), /2 documents/);
  t.match(problem(`${header}a: [\n`), /^f: .*line/);
  t.match(problem(`${header}kubeReserved: {cpu: 1}\n`), /unknown field kubeReserved/);
  t.equal(problem(`${kubernetesHeader}kubeReserved: {cpu: "1"}\n`), "");
  t.match(problem(`${header}"__proto__": {maxPods: 1}\n`), /unknown field|not allowed|__proto__/);
});

t.test("parseConfig() resolves relative file names in the directory of the configuration", async (t) => {
  const text =
    header +
    lines("staticPodPath: pods", "tlsCertFile: /abs/tls.crt", "authentication: {x509: {clientCAFile: ca.crt}}");
  const { origins } = parseConfig(text, "/etc/svc/agent.yaml", "file");
  t.match(findOrigin(origins, ["staticPodPath"]), { value: "/etc/svc/pods", source: { line: 3 } });
  t.match(findOrigin(origins, ["tlsCertFile"]), { value: "/abs/tls.crt" });
  t.match(findOrigin(origins, ["authentication", "x509", "clientCAFile"]), { value: "/etc/svc/ca.crt" });
});

t.test("configFields: every field with a flag accepts the values of the flag", async (t) => {
  t.equal(configFields.length, 136);
  for (const { steps, flag } of configFields) {
    if (flag === undefined) continue;
    const sample = flag.row.type.parse(flag.row.type.sample);
    const json = JSON.parse(JSON.stringify(toJson(flag.row, sample)));
    t.same(fromJson(flag.row, json), sample, flag.name);
    const value = steps.reduceRight<unknown>((inner, step) => ({ [step]: inner }), json);
    const decoded = decode(svcletConfiguration, value);
    t.same([decoded.errors, decoded.unknown], [[], []], flag.name);
    const yaml = parseConfig(`${header}${encodeYaml(value)}`, "f", "file");
    t.same(yaml.problems, [], flag.name);
  }
});

t.test("configFields: a field without effect is refused with file, line and name", async (t) => {
  const idle = configFields.filter((field) => !isEffective(field) && field.flag?.name !== "feature-gates");
  for (const target of idle) {
    const { steps, flag } = target;
    if (flag === undefined) continue;
    const sample = toJson(flag.row, flag.row.type.parse(flag.row.type.sample));
    if (JSON.stringify(sample) === JSON.stringify(getDefault(target, true))) continue;
    const value = steps.reduceRight<unknown>((inner, step) => ({ [step]: inner }), sample);
    const directory = files(t, { "agent.yaml": `${header}${encodeYaml(value)}` });
    const problems = problemsOf([`--config=${directory}/agent.yaml`]);
    t.ok(
      problems.some((problem) => /agent\.yaml:\d+: field .*does not support this field/.test(problem)),
      flag.name,
    );
  }
});

t.test("parseAgentCommandLine() prints a configuration that reads back as the same", async (t) => {
  const directory = files(t, {
    "agent.yaml": `${kubernetesHeader}logging:\n  verbosity: 4\nfeatureGates: {LoggingBetaOptions: false}\n`,
  });
  const file = `${directory}/agent.yaml`;
  const first = parseAgentCommandLine([`--config=${file}`, "--dry-run-config"], {}, { version: "v1.33.0" });
  if (first.kind !== "exit") throw new Error("a dry run must exit");
  t.equal(first.code, 0);
  t.match(first.stdout, `  verbosity: 4  # ${file}:4\n`);
  t.match(first.stdout, `  LoggingBetaOptions: false  # ${file}:5\n`);
  t.match(first.stdout, "maxPods: 110  # default\n");
  t.match(first.stdout, `# --config=${file}  # flag --config\n`);
  writeFileSync(`${directory}/again.yaml`, first.stdout);
  const again = loadAgentConfig([`--config=${directory}/again.yaml`], {});
  t.same(again.config, loadAgentConfig([`--config=${file}`], {}).config);
  t.match(printConfig(again), "maxPods: 110  # ");
});

t.test("parseAgentCommandLine() exits with 1 and every problem when the configuration is wrong", async (t) => {
  const directory = files(t, { "agent.yaml": `${header}maxPod: 1\nportt: 2\n` });
  const exit = parseAgentCommandLine(
    [`--config=${directory}/agent.yaml`, "--dry-run-config"],
    {},
    { version: "v1.33.0" },
  );
  t.match(exit, {
    kind: "exit",
    code: 1,
    stdout: "",
    stderr: /:3: unknown field maxPod(.|\n)*:4: unknown field portt/,
  });
  t.match(parseAgentCommandLine(["--version"], {}, { version: "v1.33.0" }), { stdout: "agent v1.33.0\n" });
  t.match(parseAgentCommandLine(["-h"], {}, { version: "v1.33.0" }), { code: 0, stdout: /--max-pods int32/ });
  t.match(parseAgentCommandLine(["--runonce"], {}, { version: "v1.33.0" }), { kind: "exit", code: 1 });
});

const root = new URL("../../../", import.meta.url);
const shared = new URL(process.env.SVC_SHARED ? `file://${process.env.SVC_SHARED}/` : "../shared/", root);
const oracle = new URL("oracles/kubelet-config/KubeletConfiguration/", shared);

/** Kubernetes' defaults with svclet's names. */
function respelt(text: string): string {
  return text
    .replaceAll("vnd.kubernetes", "vnd.svc")
    .replaceAll("/usr/libexec/kubernetes/kubelet-plugins", "/usr/libexec/svc/svclet-plugins")
    .replace("kubeAPIBurst", "svcAPIBurst")
    .replace("kubeAPIQPS", "svcAPIQPS");
}

t.test("loadAgentConfig() defaults a file as Kubernetes does", async (t) => {
  if (!existsSync(oracle)) {
    console.log("shared/ is not present: 1 check left out");
    return;
  }
  const before = readFileSync(new URL("before/v1beta1.yaml", oracle), "utf8");
  const after = parseYaml(respelt(readFileSync(new URL("after/v1beta1.yaml", oracle), "utf8")))[0]?.value;
  const { apiVersion: _version, kind: _kind, ...wanted } = after as Record<string, unknown>;
  const directory = files(t, { "agent.yaml": before });
  const { config } = loadAgentConfig([`--config=${directory}/agent.yaml`], {});
  t.same(compact(config), {
    ...(compact(wanted) as object),
    evictionHard: config.evictionHard,
    ...ours,
  });
});

/** Fields whose default Kubernetes sets only with their gate. */
const ours = { userNamespaces: { idsPerPod: 65_536 } };

/** Without zeros and empty objects, which Kubernetes' files leave out for some fields and not for others. */
function compact(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value)
    .map(([name, member]) => [name, compact(member)] as const)
    .filter(([, member]) => !isNothing(member));
  return Object.fromEntries(entries);
}

function isNothing(value: unknown): boolean {
  if (value === false || value === 0 || value === "0" || value === "" || value === "0s") return true;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** Durations for which a negative value means that there is none. */
const mayBeNegative: ReadonlySet<string> = new Set(["volumeStatsAggPeriod"]);

t.test("loadAgentConfig() refuses negative durations in every field and flag, and periods of zero", async (t) => {
  const isDuration = ({ schema, flag }: (typeof configFields)[number]): boolean =>
    (flag === undefined ? schema === duration : flag.row.type.name === "duration") as boolean;
  const all = configFields.filter((field) => isDuration(field) && !mayBeNegative.has(field.steps.join(".")));
  t.ok(all.length > 15, `${all.length} durations`);
  for (const { steps, flag } of all) {
    const value = steps.reduceRight<unknown>((inner, step) => ({ [step]: inner }), "-1s");
    const directory = files(t, { "agent.yaml": `${header}${encodeYaml(value)}` });
    t.not(problemsOf([`--config=${directory}/agent.yaml`]).length, 0, steps.join("."));
    if (flag !== undefined) t.not(problemsOf([`--${flag.name}=-1s`]).length, 0, flag.name);
  }
  for (const line of [
    "containerLogMonitorInterval: 1s",
    "nodeLeaseDurationSeconds: -5",
    "iptablesMasqueradeBit: 32",
    "iptablesDropBit: -1",
    "shutdownGracePeriod: 500ms",
    "shutdownGracePeriodCriticalPods: 5s",
    "shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 500ms",
    "shutdownGracePeriod: 5s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 2}]",
    "showHiddenMetricsForVersion: '1.31'",
    "configMapAndSecretChangeDetectionStrategy: Sometimes",
  ]) {
    const directory = files(t, { "agent.yaml": `${header}${line}\n` });
    t.not(problemsOf([`--config=${directory}/agent.yaml`]).length, 0, line);
  }
});

t.test("parseAgentCommandLine() with --dry-run-config refuses what the start refuses", async (t) => {
  for (const flags of [
    ["--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"],
    ["--tls-cipher-suites=TLS_RSA_WITH_3DES_EDE_CBC_SHA"],
    ["--allowed-unsafe-sysctls=net.*.*"],
    ["--vmodule=pod*=4", "--logging-format=json"],
  ]) {
    const dry = parseAgentCommandLine([...flags, "--dry-run-config"], {}, { version: "v1.33.0" });
    t.match(dry, { kind: "exit", code: 1 }, flags.join(" "));
    t.match(parseAgentCommandLine(flags, {}, { version: "v1.33.0" }), { kind: "exit", code: 1 }, flags.join(" "));
  }
});

t.test("fields of the file without effect and without a flag are listed with the flags without effect", async (t) => {
  const listed = JSON.parse(
    readFileSync(new URL("../../../testdata/flags-without-effect.json", import.meta.url), "utf8"),
  ) as Readonly<Record<string, readonly string[]>>;
  const idle = configFields.filter((field) => field.flag === undefined && !isEffective(field));
  t.same(
    idle.map(({ steps }) => steps.join(".")),
    listed["agent configuration file"],
  );
});

t.test("memorySwap.swapBehavior is NoSwap or LimitedSwap, and needs the gate NodeSwap", async (t) => {
  const file = (text: string) =>
    join(t.testdir({ "agent.yaml": `${header}memorySwap: {swapBehavior: ${text}}\n` }), "agent.yaml");
  t.equal(loadAgentConfig([`--config=${file("NoSwap")}`], {}).config.memorySwap?.swapBehavior, "NoSwap");
  t.equal(loadAgentConfig([`--config=${file("LimitedSwap")}`], {}).config.memorySwap?.swapBehavior, "LimitedSwap");
  t.throws(
    () => loadAgentConfig([`--config=${file("Unlimited")}`], {}),
    /memorySwap.swapBehavior "Unlimited" must be one of: "", "LimitedSwap" or "NoSwap"/,
  );
  t.throws(
    () => loadAgentConfig([`--config=${file("LimitedSwap")}`, "--feature-gates=NodeSwap=false"], {}),
    /needs feature gate NodeSwap/,
  );
});
