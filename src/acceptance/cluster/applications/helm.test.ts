/**
 * helm's install and upgrade with --wait, test, rollback, history and uninstall, with each helm on the PATH and in
 * SVC_HELMS.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import t, { type Test } from "tap";
import { findPrograms, isExecutable } from "../../../testing/apiserver/kubectl-paths.ts";
import { findMissingRequirement, programs, TestCluster } from "../cluster.ts";
import { Commands } from "./commands.ts";
import { ImageDirectory, makeServiceImage } from "./images.ts";

const configured = (process.env.SVC_HELMS ?? "").split(delimiter).filter((path) => path !== "");
const helms = [...new Set([...findPrograms("helm").slice(0, 1), ...configured])].filter(isExecutable);
const missing =
  findMissingRequirement() ?? (helms.length === 0 ? "no helm on the PATH (SVC_HELMS may name some)" : undefined);

const files: Readonly<Record<string, string>> = {
  "Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
  "values.yaml": "replicas: 2\nmessage: one\nimage: svc.local/examples/service:1\n",
  "templates/web.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: { name: "{{ .Release.Name }}" }
data: { message: "{{ .Values.message }}" }
---
apiVersion: v1
kind: Service
metadata: { name: "{{ .Release.Name }}" }
spec:
  selector: { app: "{{ .Release.Name }}" }
  ports: [{ name: http, port: 80, targetPort: 8080 }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: "{{ .Release.Name }}" }
spec:
  replicas: {{ .Values.replicas }}
  selector: { matchLabels: { app: "{{ .Release.Name }}" } }
  template:
    metadata:
      labels: { app: "{{ .Release.Name }}" }
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: "{{ .Values.image }}"
          env: [{ name: NAME, value: "{{ .Values.message }}" }, { name: PORT, value: "8080" }]
          readinessProbe: { periodSeconds: 1, httpGet: { path: /, port: 8080 } }
`,
  "templates/tests/answers.yaml": `
apiVersion: v1
kind: Pod
metadata:
  name: "{{ .Release.Name }}-answers"
  annotations: { "helm.sh/hook": test, "helm.sh/hook-delete-policy": before-hook-creation }
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: svc.local/examples/service:1
      command: [sh, -c, 'test "$(wget -q -O - http://{{ .Release.Name }}/)" = {{ .Values.message }}']
`,
};

t.setTimeout(300_000);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("helm installs, upgrades and rolls back charts on svc up", { timeout: 300_000 }, async (t) => {
    const chart = mkdtempSync(join(tmpdir(), "svc-chart-"));
    t.teardown(() => rmSync(chart, { recursive: true, force: true }));
    mkdirSync(join(chart, "templates/tests"), { recursive: true });
    for (const [path, text] of Object.entries(files)) writeFileSync(join(chart, path), text);
    using images = new ImageDirectory([makeServiceImage]);
    await using cluster = await TestCluster.create({ program: programs.bundle, imageDir: images.path });
    await cluster.start("--stop-pods");
    for (const [index, helm] of helms.entries()) {
      const namespace = `helm-${index}`;
      await t.test(helm, (t) => testHelm(t, helm, chart, new Commands(t, cluster, namespace)));
    }
  });
}

async function testHelm(t: Test, helm: string, chart: string, commands: Commands): Promise<void> {
  const run = (args: string): Promise<string> => commands.run(helm, args);
  const installed = await run(`install web ${chart} --create-namespace --wait --timeout 60s`);
  t.match(installed, "STATUS: deployed");
  t.equal(await commands.value("deployment/web", ".status.readyReplicas"), "2", "--wait has waited for all pods");
  t.match(await run("test web"), /Phase: +Succeeded/);
  const upgraded = await run(`upgrade web ${chart} --set message=two,replicas=3 --wait --timeout 60s`);
  t.match(upgraded, "REVISION: 2");
  t.equal(await commands.value("deployment/web", ".status.updatedReplicas"), "3");
  t.equal(await commands.value("configmap/web", ".data.message"), "two");
  t.match(await run("test web"), /Phase: +Succeeded/);
  // Another client's change of a field that the chart does not change is kept.
  await commands.kubectl("annotate deployment web note=kept");
  const failing = `upgrade web ${chart} --set image=svc.local/none:1 --wait --timeout 5s`;
  const { code, stdout, stderr } = await commands.tryRun(helm, failing);
  t.not(code, 0, `an upgrade with an image that does not exist fails: ${stdout}${stderr}`);
  await run("rollback web 1 --wait --timeout 60s");
  t.equal(await commands.value("configmap/web", ".data.message"), "one");
  t.equal(await commands.value("deployment/web", ".metadata.annotations.note"), "kept");
  const history = JSON.parse(await run("history web -o json")) as readonly { readonly status: string }[];
  t.same(
    history.map(({ status }) => status),
    ["superseded", "superseded", "failed", "deployed"],
  );
  t.match(await commands.value("secrets", ".items[*].type"), /^helm\.sh\/release\.v1( helm\.sh\/release\.v1){3}$/);
  await run("uninstall web --wait --timeout 60s");
  t.equal(await commands.value("deployments,services,secrets", ".items[*].metadata.name"), "", "nothing is left");
}
