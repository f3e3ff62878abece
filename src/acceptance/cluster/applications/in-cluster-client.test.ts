/** @kubernetes/client-node in a pod: it finds the API server by its service address, with the pod's token and CA. */
import { build } from "esbuild";
import t from "tap";
import { findMissingRequirement, programs, root, TestCluster } from "../cluster.ts";
import { Commands } from "./commands.ts";
import { ImageDirectory, makeNodeImage } from "./images.ts";

const missing = findMissingRequirement();

const PROGRAM = `
import { CoreV1Api, KubeConfig, Watch } from "@kubernetes/client-node";
const config = new KubeConfig();
config.loadFromCluster();
console.log(config.getCurrentCluster().server);
const api = config.makeApiClient(CoreV1Api);
const namespace = "robots";
const { items } = await api.listNamespacedPod({ namespace });
console.log("pods " + items.map(({ metadata }) => metadata.name).join());
const refused = await api.listNode().catch((error) => error);
console.log("nodes " + refused.code);
const added = Promise.withResolvers();
const watch = await new Watch(config).watch("/api/v1/namespaces/robots/configmaps", {}, (type, object) => {
  if (object.metadata.name === "made") added.resolve(type);
}, () => {});
await api.createNamespacedConfigMap({ namespace, body: { metadata: { name: "made" } } });
console.log("watch " + await added.promise);
watch.abort();
const viaName = await fetch("https://kubernetes.default.svc.cluster.local/version").then(({ ok }) => ok, (error) => String(error.cause?.code));
console.log("by name " + viaName);
process.exit(0);
`;

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "client" },
  spec: {
    serviceAccountName: "robot",
    restartPolicy: "Never",
    containers: [
      {
        name: "main",
        image: "svc.local/examples/node:1",
        env: [{ name: "NODE_EXTRA_CA_CERTS", value: "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt" }],
      },
    ],
  },
};

t.setTimeout(300_000);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("a client in a pod uses the service of the API server", { timeout: 300_000 }, async (t) => {
    const bundled = await build({
      stdin: { contents: PROGRAM, resolveDir: root },
      bundle: true,
      platform: "node",
      format: "esm",
      banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
      write: false,
    });
    using images = new ImageDirectory([() => makeNodeImage(bundled.outputFiles[0]?.text ?? "")]);
    // Pods reach the API server at an address of the node.
    const flags = ["--bind-address=0.0.0.0"];
    await using cluster = await TestCluster.create({ program: programs.bundle, imageDir: images.path, flags });
    await cluster.start("--stop-pods");
    const commands = new Commands(t, cluster, "robots");
    await commands.kubectl("create namespace robots");
    await commands.kubectl("create serviceaccount robot");
    await commands.kubectl("create rolebinding robot --clusterrole=edit --serviceaccount=robots:robot");
    await commands.kubectl("create -f -", JSON.stringify(POD));
    const end = "wait --for=jsonpath={.status.phase}=Succeeded pod/client --timeout=90s";
    const { code } = await commands.tryKubectl(end);
    const [server, ...lines] = (await commands.kubectl("logs client")).trim().split("\n");
    t.equal(code, 0, "the client succeeds");
    const address = await new Commands(t, cluster).value("service/kubernetes", ".spec.clusterIP");
    t.equal(server, `https://${address}:443`);
    t.same(lines, ["pods client", "nodes 403", "watch ADDED", "by name true"]);
  });
}
