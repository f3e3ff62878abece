/** Names of services and pods resolve in pods of svc up. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync } from "node:fs";
import t, { type Test } from "tap";
import { findMissing } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, root, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";
import { Machine, Network } from "./machine.ts";

const missing =
  findMissingRequirement() ?? ((await findMissing()).length > 0 ? `${await findMissing()} missing` : undefined);

t.setTimeout(240_000);

const container = { name: "c", image: exampleImage, imagePullPolicy: "IfNotPresent", command: ["sleep", "3600"] };
const pod = (name: string, spec: object) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { app: name } },
  spec: { terminationGracePeriodSeconds: 0, containers: [container], ...spec },
});
const service = (name: string, spec: object) => ({ apiVersion: "v1", kind: "Service", metadata: { name }, spec });

const objects = [
  pod("client", {}),
  pod("web", { hostname: "web-0", subdomain: "headless" }),
  pod("host", { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" }),
  pod("own", {
    dnsPolicy: "None",
    dnsConfig: { nameservers: ["192.0.2.53"], searches: ["corp.example"], options: [{ name: "ndots", value: "2" }] },
  }),
  service("web", { selector: { app: "web" }, ports: [{ name: "http", port: 80 }] }),
  service("headless", {
    selector: { app: "web" },
    clusterIP: "None",
    ports: [{ name: "http", port: 80, targetPort: 8080 }],
  }),
  service("outside", { type: "ExternalName", externalName: "www.example" }),
];

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("names resolve in pods, before and after a crash of svc up", async (t) => {
    const upstream = await startUpstream(t);
    await using cluster = await TestCluster.create({
      program: programs.sources,
      flags: [`--dns-forward=127.0.0.1:${upstream.port},corp.example=127.0.0.1:1`],
    });
    await cluster.start();
    const run = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await cluster.kubectl(args);
      t.equal(code, 0, `kubectl ${args.join(" ")}: ${stderr}`);
      return stdout;
    };
    const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    t.equal((await cluster.kubectl(["apply", "-f", "-"], { input })).code, 0);
    await run("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s");
    const ipOf = (kind: string, name: string, path: string) => run("get", kind, name, "-o", `jsonpath={${path}}`);
    const [dns, web, podIp] = await Promise.all([
      run("get", "service", "-n", "kube-system", "kube-dns", "-o", "jsonpath={.spec.clusterIP}"),
      ipOf("service", "web", ".spec.clusterIP"),
      ipOf("pod", "web", ".status.podIP"),
    ]);
    const lookUp = async (name: string, type = "a", from = "client"): Promise<string> => {
      const words = ["busybox", "nslookup", `-type=${type}`, name];
      return (await cluster.kubectl(["exec", from, "--", ...words])).stdout;
    };

    const resolvConf = await run("exec", "client", "--", "cat", "/etc/resolv.conf");
    t.match(resolvConf, `search default.svc.cluster.local svc.cluster.local cluster.local`);
    t.match(resolvConf, `nameserver ${dns}\noptions ndots:5\n`);
    t.match(await lookUp("web"), `Name:\tweb.default.svc.cluster.local\nAddress: ${web}\n`);
    const headless = await until("the endpoint", async () => {
      const text = await lookUp("headless");
      return text.includes(podIp) ? text : undefined;
    });
    t.match(headless, `Address: ${podIp}\n`);
    const domain = "default.svc.cluster.local";
    t.match(await lookUp(`web-0.headless.${domain}`), `Address: ${podIp}\n`);
    t.match(await lookUp(`_http._tcp.headless.${domain}`, "srv"), `service = 0 100 8080 web-0.headless.${domain}`);
    const reverse = (ip: string): string => `${ip.split(".").reverse().join(".")}.in-addr.arpa`;
    t.match(await lookUp(reverse(podIp), "ptr"), `name = web-0.headless.${domain}`);
    t.match(await lookUp(reverse(web), "ptr"), `name = web.${domain}`);
    t.match(await lookUp(`${podIp.replaceAll(".", "-")}.default.pod.cluster.local`), `Address: ${podIp}\n`);
    t.match(await lookUp("dns-version.cluster.local", "txt"), `text = "1.1.0"`);
    t.match(await lookUp(`outside.${domain}`), /canonical name = www\.example\n(?:.*\n)*Address: 192\.0\.2\.1\n/);
    t.match(await lookUp("a.b.example"), "Address: 192.0.2.1\n");
    t.match(await lookUp(`missing.${domain}`), "NXDOMAIN");
    t.match(await lookUp("x.corp.example"), "SERVFAIL", "the server of the domain is not there");

    const fromHost = await lookUp(`web.${domain}`, "a", "host");
    t.match(fromHost, `Address: ${web}\n`, "from the host's network");
    const own = await run("exec", "own", "--", "cat", "/etc/resolv.conf");
    t.equal(own, "search corp.example\nnameserver 192.0.2.53\noptions ndots:2\n");
    const tcp = await run("exec", "client", "--", "sh", "-c", `printf '\\0\\1x' | nc -w 2 ${dns} 53; echo $?`);
    t.equal(tcp, "0\n", "port 53 accepts connections over TCP");
    t.notMatch(await run("get", "events"), /MissingClusterDNS|DNSServerFailed/);

    await cluster.stop("SIGKILL");
    await cluster.start("--stop-pods");
    await until("the name to resolve again", async () =>
      (await lookUp("web")).includes(`Address: ${web}\n`) ? true : undefined,
    );
    t.equal(await cluster.stop(), 0);
    t.notMatch((await command("ip", ["-o", "address", "show", "lo"])).stdout, ` ${dns}/`, "the address is removed");
    t.same(await cluster.remains(), []);
  });
  t.test("names resolve on a node that joined, also without the API server", testJoinedNode);
}

async function testJoinedNode(t: Test): Promise<void> {
  await using network = await Network.create();
  await using cluster = await TestCluster.create({ program: programs.sources, flags: ["--bind-address=0.0.0.0"] });
  await cluster.start("--stop-pods");
  await using machine = await Machine.create(network, "d1", 11);
  const words = ["token", "create", `--svcconfig=${cluster.kubeconfig}`, "--ttl=10m"];
  const server = `--server=https://${network.gateway}:${cluster.port}`;
  const join = await command("node", [`${root}/src/main.ts`, ...words, server]);
  t.equal(join.code, 0, join.stderr);
  const line = join.stdout.trim();
  t.match(line, / --cluster-domain=cluster\.local --serve-dns\b/);
  const dns = /--cluster-dns=(\S+)/.exec(line)?.[1] ?? "";
  const resolves = async (): Promise<true | undefined> => {
    // Otherwise the query would leave for the node of svc up.
    const addresses = await machine.run("ip", "-o", "address", "show", "lo");
    if (!addresses.stdout.includes(` ${dns}/`)) return undefined;
    const { stdout } = await machine.run("busybox", "nslookup", "kubernetes.default.svc.cluster.local", dns);
    return /Name:\tkubernetes\.default\.svc\.cluster\.local\nAddress: 10\./.test(stdout) || undefined;
  };
  const untilResolved = (when: string) =>
    until(`the name to resolve ${when}`, resolves).catch((cause: unknown) => {
      throw new Error(machine.log(), { cause });
    });
  machine.startAgent(line);
  await untilResolved("on the node");
  await until("the records in their file", () => existsSync(`${machine.directory}/agent/dns-records`));
  await cluster.stop();
  t.ok(await resolves(), "while the API server is away");
  await machine.killAgent();
  t.notOk(await resolves());
  machine.startAgent(line);
  await untilResolved("after a restart without the API server");
}

/** A server that has `*.example` at 192.0.2.1. */
async function startUpstream(t: Test): Promise<{ readonly port: number }> {
  const socket = createSocket("udp4");
  t.teardown(() => socket.close());
  socket.on("message", (query, { port, address }) => {
    // Header, question with a name, and an OPT record of 11 bytes.
    const question = query.subarray(12, query.length - 11);
    const exists = question.includes("example") && question.readUInt16BE(question.length - 4) === 1;
    const header = Buffer.from([query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, exists ? 1 : 0, 0, 0, 0, 0]);
    const answer = Buffer.from(exists ? "c00c000100010000012c0004c0000201" : "", "hex");
    socket.send(Buffer.concat([header, question, answer]), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return { port: socket.address().port };
}
