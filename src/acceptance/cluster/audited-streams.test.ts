/** exec through an API server that audits and traces, into a container of a real agent that traces as well. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { findMissing, type PrivateContainerd, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { type CollectedSpan, startCollector } from "../../testing/tracing/collector.ts";
import { AgentProcess } from "./agent-process.ts";
import { type CommandResult, command, findMissingRequirement } from "./cluster.ts";

const RUN_MS_MAX = 180_000;

interface AuditEvent {
  readonly stage: string;
  readonly auditID: string;
  readonly requestURI: string;
  readonly objectRef?: { readonly subresource?: string; readonly name?: string };
  readonly responseStatus?: { readonly code: number };
}

const missing = findMissingRequirement() ?? (await findMissing())[0];

t.setTimeout(RUN_MS_MAX);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("exec is recorded and traced from kubectl to the runtime", { timeout: RUN_MS_MAX }, async (t) => {
    const collector = await startCollector(t);
    await using containerd = await startPrivateContainerd();
    await using node = await AgentProcess.create({ containerd, name: "audited" });
    const log = await start(node, collector.endpoint);
    await createPod(node, containerd);

    const { stdout, stderr, code } = await kubectl(
      node,
      ["exec", "-i", "p", "--", "sh", "-c", "cat; echo err >&2"],
      "in",
    );
    t.same([stdout, stderr, code], ["in", "err\n", 0]);
    const isExec = ({ objectRef }: AuditEvent): boolean => objectRef?.subresource === "exec";
    const events = await until("the events of exec", () => {
      const found = readEvents(log).filter(isExec);
      return found.some(({ stage }) => stage === "ResponseComplete") && found;
    });
    t.match(events, [
      { stage: "RequestReceived", objectRef: { name: "p" } },
      { stage: "ResponseStarted", responseStatus: { code: 101 } },
      { stage: "ResponseComplete", responseStatus: { code: 101 } },
    ]);
    t.equal(new Set(events.map(({ auditID }) => auditID)).size, 1);
    t.match(events[0]?.requestURI, /\/pods\/p\/exec\?command=sh&/);

    const [request, agent, runtime] = await until(
      () => `the spans of exec: ${describe(collector.spans)}`,
      () => {
        const request = collector.spans.find(({ name }) => name.endsWith("/pods/{:name}/exec"));
        const inTrace = collector.spans.filter(({ traceId }) => traceId === request?.traceId);
        const agent = inTrace.find(({ service, name }) => service === "svclet" && name === "/exec");
        const runtime = inTrace.find(({ name }) => name === "runtime.v1.RuntimeService/Exec");
        return request && agent && runtime && [request, agent, runtime];
      },
      { timeoutMs: 20_000 },
    );
    t.equal(request?.service, "apiserver");
    t.equal(request?.attributes["audit-id"], events[0]?.auditID);
    t.equal(runtime?.parentId, agent?.spanId);
    const sync = collector.spans.find(({ name }) => name === "syncPod");
    t.match(sync?.attributes, { "k8s.pod": "default/p", "k8s.pod.update_type": "create" });
    t.notMatch(JSON.stringify(collector.spans.map(({ attributes }) => attributes)), "echo err");
  });
}

function describe(spans: readonly CollectedSpan[]): string {
  const exec = spans.filter(({ name }) => /exec/i.test(name));
  return exec.map(({ service, name, traceId }) => `${service} ${name} ${traceId}`).join("\n");
}

/** Returns the path of the audit log. */
async function start(node: AgentProcess, endpoint: string): Promise<string> {
  const [policy, log, tracing] = ["policy.yaml", "audit.log", "tracing.yaml"].map((name) => join(node.directory, name));
  writeFileSync(policy!, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n");
  const settings = { endpoint, samplingRatePerMillion: 1_000_000 };
  const identity = { apiVersion: "apiserver.svc.io/v1beta1", kind: "TracingConfiguration" };
  writeFileSync(tracing!, JSON.stringify({ ...identity, ...settings }));
  const dropIns = join(node.directory, "agent.d");
  mkdirSync(dropIns);
  const agent = { apiVersion: "svclet.config.svc.io/v1beta1", kind: "SvcletConfiguration", tracing: settings };
  writeFileSync(join(dropIns, "tracing.conf"), JSON.stringify(agent));
  await node.startServer(
    `--audit-policy-file=${policy}`,
    `--audit-log-path=${log}`,
    `--tracing-config-file=${tracing}`,
  );
  node.start("cluster", `--config-dir=${dropIns}`);
  return log!;
}

function readEvents(log: string): readonly AuditEvent[] {
  const lines = readFileSync(log, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as AuditEvent);
}

async function kubectl(node: AgentProcess, args: readonly string[], input?: string): Promise<CommandResult> {
  return await command("kubectl", [`--kubeconfig=${node.adminConfig}`, ...args], {
    timeoutMs: 20_000,
    ...(input === undefined ? {} : { input }),
  });
}

async function createPod(node: AgentProcess, { image }: PrivateContainerd): Promise<void> {
  const container = { name: "c", image, imagePullPolicy: "Never", command: ["sleep", "3600"] };
  const spec = { nodeName: "n1", terminationGracePeriodSeconds: 0, containers: [container] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec };
  const { code, stderr } = await kubectl(node, ["create", "-f", "-"], JSON.stringify(pod));
  if (code !== 0) throw new Error(stderr);
  await until("the pod to run", async () => {
    return (await kubectl(node, ["get", "pod", "p", "-o", "jsonpath={.status.phase}"])).stdout === "Running";
  });
}
