/** Two machines join a cluster with the command that `svc token create` prints, and run pods for it. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { CertificateFiles } from "../../agent/certificates/certificate-files.ts";
import { issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { findMissing } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { createJoinCommand, Machine, Network } from "./machine.ts";

const DAY_MS = 86_400_000;
const problem =
  findMissingRequirement() ?? ((await findMissing()).length > 0 ? `${await findMissing()} missing` : undefined);

if (problem !== undefined) console.error(`Skipped: ${problem}.`);
else {
  t.test("svc agent --join makes nodes of two machines, whose certificates are renewed while they run", async (t) => {
    await using network = await Network.create();
    await using cluster = await TestCluster.create({ program: programs.sources, flags: ["--bind-address=0.0.0.0"] });
    await cluster.start();
    await using one = await Machine.create(network, "j1", 11);
    await using two = await Machine.create(network, "j2", 12);
    for (const machine of [one, two]) machine.startAgent(await createJoinCommand(cluster, network));
    for (const machine of [one, two]) {
      const { code, stderr } = await cluster.kubectl(["wait", "--for=create", `node/${machine.name}`, "--timeout=60s"]);
      t.equal(code, 0, `${stderr}${code === 0 ? "" : machine.log()}`);
      await cluster.kubectl(["wait", "--for=condition=Ready", `node/${machine.name}`, "--timeout=60s"]);
      await runPod(cluster, machine, `on-${machine.name}`);
    }
    t.same(await addresses(cluster, "j1"), `${network.address(11)} j1`);

    const [before, pid] = [new X509Certificate(one.certificate("server")), one.pid];
    t.ok(before.checkIP(network.address(11)));
    await one.plug(21);
    await until("the new address of the node", async () =>
      (await addresses(cluster, "j1")) === `${network.address(21)} j1` ? true : undefined,
    );
    await until("a serving certificate for it", async () =>
      new X509Certificate(one.certificate("server")).checkIP(network.address(21)),
    );
    t.equal(
      (await cluster.kubectl(["logs", "on-j1"])).stdout,
      "hello from on-j1\n",
      "the server trusts the new certificate",
    );
    t.equal(one.pid, pid, "the agent was not restarted");

    await two.stopAgent();
    const old = await replaceCertificate(cluster, two);
    two.startAgent(await createJoinCommand(cluster, network));
    const renewed = await until("another client certificate", async () => {
      const found = new X509Certificate(two.certificate("client"));
      return found.serialNumber === old.serialNumber ? undefined : found;
    });
    t.equal(renewed.subject, old.subject);
    await runPod(cluster, two, "after");
    for (const name of ["on-j1", "on-j2", "after"]) {
      t.equal((await cluster.kubectl(["delete", "pod", name, "--timeout=60s"])).code, 0, name);
    }
  });
}

async function addresses(cluster: TestCluster, node: string): Promise<string> {
  const path = "jsonpath={.status.addresses[*].address}";
  return (await cluster.kubectl(["get", "node", node, "-o", path])).stdout;
}

/** Runs a pod on the machine, and reads its log through the server. */
async function runPod(cluster: TestCluster, machine: Machine, name: string): Promise<void> {
  const container = {
    name: "c",
    image: machine.image,
    imagePullPolicy: "Never",
    command: ["sh", "-c", `echo hello from ${name}; sleep 3600`],
  };
  const spec = { nodeName: machine.name, terminationGracePeriodSeconds: 0, containers: [container] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
  const created = await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(pod) });
  if (created.code !== 0) throw new Error(created.stderr);
  await until(`the log of ${name}`, async () => {
    const { stdout } = await cluster.kubectl(["logs", name]);
    return stdout === `hello from ${name}\n` ? true : undefined;
  }).catch((cause: unknown) => {
    throw new Error(`${machine.name} said:\n${machine.log()}`, { cause });
  });
}

/** Gives the agent of a machine a certificate that is due for renewal. */
async function replaceCertificate(cluster: TestCluster, machine: Machine): Promise<X509Certificate> {
  const authority = (suffix: string): string => readFileSync(join(cluster.dataDir, `pki/ca.${suffix}`), "utf8");
  const request = {
    commonName: `system:node:${machine.name}`,
    organizations: ["system:nodes"],
    usages: ["client"],
    days: 10,
  } as const;
  const issued = Date.now() - 9.5 * DAY_MS;
  const pair = await issueCertificate({ cert: authority("crt"), key: authority("key") }, request, issued);
  await new CertificateFiles(join(machine.directory, "pki"), "client").write(pair, Date.now());
  return new X509Certificate(pair.cert);
}
