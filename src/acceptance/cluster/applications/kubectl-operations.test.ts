/** kubectl's commands that operate an application: those that workloads.test.ts does not use. */
import t, { type Test } from "tap";
import { createCertificateRequest } from "../../../auth/pki/certificate-signing.ts";
import { findMissingRequirement, programs, TestCluster } from "../cluster.ts";
import { Commands } from "./commands.ts";
import { ImageDirectory, makeServiceImage } from "./images.ts";

const missing = findMissingRequirement();
const IMAGE = "svc.local/examples/service:1";

t.setTimeout(300_000);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("kubectl operates applications on svc up", { timeout: 300_000 }, async (t) => {
    using images = new ImageDirectory([makeServiceImage]);
    await using cluster = await TestCluster.create({ program: programs.bundle, imageDir: images.path });
    await cluster.start("--stop-pods");
    const commands = new Commands(t, cluster, "shop");
    await commands.kubectl("create namespace shop");
    await t.test("a deployment", (t) => testDeployment(t, new Commands(t, cluster, "shop")));
    await t.test("manifests", (t) => testManifests(t, new Commands(t, cluster, "shop")));
    await t.test("jobs", (t) => testJobs(t, new Commands(t, cluster, "shop")));
    await t.test("the node", (t) => testNode(t, new Commands(t, cluster, "shop")));
    await t.test("access", (t) => testAccess(t, new Commands(t, cluster, "shop")));
  });
}

async function testDeployment(t: Test, commands: Commands): Promise<void> {
  const { kubectl } = bind(commands);
  await kubectl(`create deployment web --image=${IMAGE} --replicas=2 --port=8080 -- serve`);
  await kubectl("set env deployment/web NAME=web PORT=8080");
  await kubectl("set resources deployment/web --requests=cpu=50m --limits=memory=64Mi");
  await kubectl("rollout status deployment/web --timeout=60s");
  t.match(await kubectl("expose deployment web --port=80 --target-port=8080"), "service/web exposed");
  t.equal(await kubectl("exec deployment/web -- wget -q -O - http://web/"), "web\n", "the service answers");
  await kubectl("scale deployment/web --current-replicas=2 --replicas=3");
  await kubectl("wait --for=jsonpath={.status.availableReplicas}=3 deployment/web --timeout=30s");
  await kubectl("autoscale deployment web --min=1 --max=4 --cpu-percent=80");
  await kubectl("wait --for=condition=ScalingActive horizontalpodautoscaler/web --timeout=90s");
  t.match(await kubectl("get horizontalpodautoscaler web"), /cpu: \d+%\/80% +1 +4 +\d/);
  await kubectl("delete horizontalpodautoscaler web");
  await kubectl("set image deployment/web service=svc.local/none:1");
  await kubectl("wait --for=jsonpath={.status.updatedReplicas}=1 deployment/web --timeout=30s");
  await kubectl(`set image deployment/web service=${IMAGE}`);
  await kubectl("rollout status deployment/web --timeout=60s");
  await kubectl("label deployment web tier=front");
  await kubectl("label deployment web tier=back --overwrite");
  t.match(await kubectl("get deployments -l tier=back -o name"), "deployment.apps/web");
  await kubectl("label deployment web tier-");
  t.equal(await kubectl("get deployments -l tier -o name"), "");
  await kubectl("annotate deployment web note=one");
  t.equal(await commands.value("deployment/web", ".metadata.annotations.note"), "one");
  t.match(await kubectl("events --for deployment/web"), /ScalingReplicaSet +Deployment\/web +Scaled up replica set/);
  t.match(await kubectl("get events --field-selector reason=ScalingReplicaSet"), "deployment/web");
  t.match(await kubectl("describe deployment web"), /Replicas: +\d desired \| \d updated/);
  t.match(await kubectl("top pod"), /web-\S+ +\d+m +\d+Mi/);
  t.match(await kubectl("top node"), /e2e +\d+m +\d+% +\d+Mi/);
}

async function testManifests(t: Test, commands: Commands): Promise<void> {
  const { kubectl } = bind(commands);
  const map = (name: string, value: string): string =>
    JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels: { set: "x" } }, data: { value } });
  const list = (...items: readonly string[]): string => `{"apiVersion":"v1","kind":"List","items":[${items.join()}]}`;
  await kubectl("apply -f -", list(map("a", "1"), map("b", "1")));
  const { code, stdout } = await commands.tryKubectl("diff -f -", map("a", "2"));
  t.equal(code, 1, "diff finds a difference");
  t.match(stdout, /^-\s+value: "1"\n\+\s+value: "2"$/m);
  t.equal((await commands.tryKubectl("diff -f -", map("a", "1"))).code, 0, "diff finds none");
  const prune = "apply -f - --prune -l set=x --prune-allowlist=core/v1/ConfigMap";
  t.match(await kubectl(prune, map("a", "2")), "configmap/b pruned");
  t.match(await kubectl("apply -f - --server-side --force-conflicts", map("a", "3")), "serverside-applied");
  const uid = await commands.value("configmap/a", ".metadata.uid");
  await kubectl("replace -f -", map("a", "4"));
  t.equal(await commands.value("configmap/a", ".metadata.uid"), uid, "replace keeps the object");
  await kubectl("replace --force -f -", map("a", "5"));
  t.not(await commands.value("configmap/a", ".metadata.uid"), uid, "replace --force makes another one");
  await kubectl("delete configmap -l set=x");
}

async function testJobs(t: Test, commands: Commands): Promise<void> {
  const { kubectl } = bind(commands);
  await kubectl(`create cronjob tick --image=${IMAGE} --schedule=@yearly -- echo tock`);
  await kubectl("create job once --from=cronjob/tick");
  await kubectl("wait --for=condition=complete job/once --timeout=60s");
  t.equal(await kubectl("logs job/once"), "tock\n");
  t.equal(await commands.value("job/once", ".metadata.ownerReferences[0].name"), "tick");
  await kubectl("delete cronjob tick --cascade=foreground --timeout=30s");
  t.equal(await kubectl("get jobs,pods -l job-name -o name"), "", "its jobs are gone");
}

async function testNode(t: Test, commands: Commands): Promise<void> {
  const { kubectl } = bind(commands);
  await kubectl("cordon e2e");
  t.match(await kubectl("get node e2e"), "Ready,SchedulingDisabled");
  await kubectl("scale deployment/web --replicas=4");
  const pending = "get pods --field-selector=status.phase=Pending -o name";
  await kubectl("wait --for=jsonpath={.status.unavailableReplicas}=1 deployment/web --timeout=30s");
  t.match(await kubectl(pending), "pod/web-", "a new pod waits");
  t.match(await kubectl("events"), "0/1 nodes are available: 1 node(s) were unschedulable");
  await kubectl("uncordon e2e");
  await kubectl("rollout status deployment/web --timeout=60s");
  await kubectl("create poddisruptionbudget web --selector=app=web --min-available=4");
  await kubectl("wait --for=jsonpath={.status.currentHealthy}=4 poddisruptionbudget/web --timeout=30s");
  const refused = await commands.tryKubectl("drain e2e --pod-selector=app=web --timeout=3s");
  t.not(refused.code, 0, "the budget refuses evictions");
  t.match(refused.stderr, "Cannot evict pod as it would violate the pod's disruption budget.");
  await kubectl("delete poddisruptionbudget web");
  const drained = await kubectl("drain e2e --pod-selector=app=web --timeout=60s");
  t.match(drained, "node/e2e drained");
  t.equal(await kubectl("get pods --field-selector=status.phase=Running -l app=web -o name"), "", "no pod runs");
  await kubectl("uncordon e2e");
  await kubectl("rollout status deployment/web --timeout=60s");
  await kubectl("taint node e2e maintenance=yes:NoExecute");
  await kubectl("wait --for=jsonpath={.status.unavailableReplicas}=4 deployment/web --timeout=60s");
  await kubectl("taint node e2e maintenance-");
  await kubectl("rollout status deployment/web --timeout=60s");
}

async function testAccess(t: Test, commands: Commands): Promise<void> {
  const { kubectl } = bind(commands);
  await kubectl("create serviceaccount robot");
  const robot = "--as=system:serviceaccount:shop:robot";
  t.equal((await commands.tryKubectl(`auth can-i list pods ${robot}`)).stdout, "no\n");
  await kubectl("create rolebinding robot --clusterrole=view --serviceaccount=shop:robot");
  t.equal(await kubectl(`auth can-i list pods ${robot}`), "yes\n");
  t.match(await kubectl("auth whoami"), "system:masters");
  const { request: pem } = await createCertificateRequest({ commonName: "dev", organizations: [] });
  const request = {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name: "dev" },
    spec: {
      signerName: "kubernetes.io/kube-apiserver-client",
      usages: ["client auth"],
      request: Buffer.from(pem).toString("base64"),
    },
  };
  await kubectl("apply -f -", JSON.stringify(request));
  t.match(await kubectl("get certificatesigningrequest dev"), "Pending");
  await kubectl("certificate approve dev");
  await kubectl("wait --for=jsonpath={.status.certificate} certificatesigningrequest/dev --timeout=30s");
  t.match(await kubectl("get certificatesigningrequest dev"), "Approved,Issued");
}

function bind(commands: Commands) {
  return {
    kubectl: (args: string | readonly string[], input?: string): Promise<string> => commands.kubectl(args, input),
  };
}
