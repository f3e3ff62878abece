/** Services of svc up in a network namespace of its own: traffic from a pod, the node and a host outside. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import t from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { type CommandResult, command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";

const missing = findMissingRequirement();

t.setTimeout(240_000);

/** A namespace with one link to this host. */
class NodeNamespace implements AsyncDisposable {
  readonly name = `svcn${randomBytes(3).toString("hex")}`;
  readonly #third = randomBytes(1)[0]!;

  static async create(): Promise<NodeNamespace> {
    const namespace = new NodeNamespace();
    const { name, node, outside } = namespace;
    const ip = (...words: readonly string[]): void => void execFileSync("ip", words);
    ip("netns", "add", name);
    ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name);
    ip("addr", "add", `${outside}/24`, "dev", name);
    ip("link", "set", name, "up");
    ip("-n", name, "link", "set", "lo", "up");
    ip("-n", name, "addr", "add", `${node}/24`, "dev", "eth0");
    ip("-n", name, "link", "set", "eth0", "up");
    ip("-n", name, "route", "add", "default", "via", outside);
    return namespace;
  }

  get node(): string {
    return `10.91.${this.#third}.2`;
  }

  get outside(): string {
    return `10.91.${this.#third}.1`;
  }

  /** The command line that runs a program in the namespace. */
  get enter(): readonly [string, string] {
    return ["nsenter", `--net=/run/netns/${this.name}`];
  }

  run(...words: readonly string[]): Promise<CommandResult> {
    const [program, ...args] = [...this.enter, ...words];
    return command(program!, args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await command("ip", ["netns", "delete", this.name]);
    await command("ip", ["link", "delete", this.name]);
  }
}

const serve = "while :; do echo $HOSTNAME | nc -l -p 8080; done";
const containerOf = (script: string) => ({
  name: "c",
  image: exampleImage,
  imagePullPolicy: "IfNotPresent",
  command: ["sh", "-c", script],
});
const deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { terminationGracePeriodSeconds: 0, containers: [containerOf(serve)] },
    },
  },
};
const client = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "client" },
  spec: { terminationGracePeriodSeconds: 0, containers: [containerOf("sleep 3600")] },
};
const service = (name: string, spec: object) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name },
  spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
});
const items = [
  deployment,
  client,
  service("web", { type: "NodePort", ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }),
  service("balanced", { type: "LoadBalancer", ports: [{ port: 8000, targetPort: 8080 }] }),
  service("taken", { type: "LoadBalancer", ports: [{ port: 8000, targetPort: 8080 }] }),
  service("empty", { selector: { app: "none" } }),
];

/** What a program in the pod's network namespace gets from the API at the address of its service. */
const listPods = `
  const [host, token, ca] = process.argv.slice(1);
  const options = { host, port: 443, path: "/api/v1/namespaces/default/pods", ca, headers: { authorization: "Bearer " + token } };
  require("node:https").get(options, (response) => { console.log(response.statusCode); response.resume(); }).on("error", (error) => console.log(error.message));
`;

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("services of svc up lead to their pods", async (t) => {
    await using namespace = await NodeNamespace.create();
    await using cluster = await TestCluster.create({
      program: [...namespace.enter, ...programs.sources],
      flags: ["--bind-address=0.0.0.0"],
    });
    await cluster.start();
    const kubectl = async (args: readonly string[], input = ""): Promise<string> => {
      const words = [...namespace.enter, kubectlPaths()[0] ?? "kubectl", ...args];
      const { code, stdout, stderr } = await command(words[0]!, words.slice(1), { env: cluster.env, input });
      t.equal(code, 0, `kubectl ${args.join(" ")}: ${stderr}`);
      return stdout;
    };
    await kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    await kubectl(["wait", "--for=condition=Ready", "pod", "--all", "--timeout=90s"]);
    const ipOf = (name: string): Promise<string> => kubectl(["get", "svc", name, "-o", "jsonpath={.spec.clusterIP}"]);
    const [web, empty] = [await ipOf("web"), await ipOf("empty")];
    const nc = (address: string, port: number): string => `timeout 3 nc ${address} ${port} </dev/null`;
    const fromPod = async (address: string, port = 80): Promise<string> =>
      await kubectl(["exec", "client", "--", "sh", "-c", `${nc(address, port)} 2>&1 || true`]);
    const fromNode = async (address: string, port = 80): Promise<string> =>
      (await namespace.run("sh", "-c", `busybox ${nc(address, port).replace("timeout 3 ", "")} 2>&1`)).stdout;
    const fromOutside = async (address: string, port: number): Promise<string> =>
      (await command("sh", ["-c", `timeout 3 busybox nc ${address} ${port} </dev/null 2>&1`])).stdout;

    await t.test("from a pod, the node and outside", async (t) => {
      await until("the endpoints", async () => (/^web-/.test(await fromPod(web)) ? true : undefined));
      const answers = new Set<string>();
      for (let i = 0; i < 20 && answers.size < 2; i++) answers.add(await fromPod(web));
      t.equal(answers.size, 2, "both pods answer");
      t.match(await fromNode(web), /^web-/);
      t.match(await fromPod(namespace.node, 30080), /^web-/);
      t.match(await fromOutside(namespace.node, 30080), /^web-/);
      t.match(await fromOutside(namespace.node, 8000), /^web-/, "the load balancer has the node's address");
    });

    await t.test("addresses without endpoints are refused", async (t) => {
      t.match(await fromPod(empty), /refused/);
      t.match(await fromNode(empty), /refused/);
      t.match(await fromPod(web, 81), /refused/);
      t.match(await fromPod(web.replace(/\d+$/, "250")), /refused/, "an address of no service");
    });

    await t.test("a port that another load balancer has is reported", async (t) => {
      const ingress = "jsonpath={.status.loadBalancer.ingress[*].ip}";
      t.equal(await kubectl(["get", "svc", "balanced", "-o", ingress]), namespace.node);
      t.equal(await kubectl(["get", "svc", "taken", "-o", ingress]), "");
      const events = await kubectl(["get", "events", "--field-selector=involvedObject.name=taken"]);
      t.match(events, /SyncLoadBalancerFailed.*port 8000\/TCP of the nodes is used by Service default\/balanced/);
    });

    await t.test("a program in a pod reaches the API by the pod's environment, token and CA", async (t) => {
      const inPod = (script: string): Promise<string> => kubectl(["exec", "client", "--", "sh", "-c", script]);
      const account = "/var/run/secrets/kubernetes.io/serviceaccount";
      const host = (await inPod("echo $KUBERNETES_SERVICE_HOST")).trim();
      const [token, ca] = [await inPod(`cat ${account}/token`), await inPod(`cat ${account}/ca.crt`)];
      const podIp = await kubectl(["get", "pod", "client", "-o", "jsonpath={.status.podIP}"]);
      const pid = (
        await command("sh", [
          "-c",
          `for n in /var/run/netns/cni-*; do nsenter --net=$n ip -4 addr show eth0 | grep -q "${podIp}/" && echo $n; done 2>/dev/null`,
        ])
      ).stdout
        .trim()
        .split("\n")[0];
      const answer = await command("nsenter", [`--net=${pid}`, process.execPath, "-e", listPods, host, token, ca]);
      t.equal(answer.stdout.trim(), "403", "authenticated by the token, and not permitted to list pods");
    });

    await t.test("services work while svc up is stopped, and a stop with --stop-pods leaves no rules", async (t) => {
      await cluster.stop("SIGKILL");
      t.match(await fromOutside(namespace.node, 30080), /^web-/);
      await cluster.start("--stop-pods");
      await cluster.stop();
      const { stdout } = await namespace.run("/usr/sbin/nft", "list", "tables");
      t.notMatch(stdout, "svc-proxy");
    });
  });
}
