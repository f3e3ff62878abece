/** Applications of many services: all pods become ready, and the services find each other by their names. */
import { join } from "node:path";
import t, { type Test } from "tap";
import { findMissingRequirement, programs, root, TestCluster } from "../cluster.ts";
import { Commands } from "./commands.ts";
import { ImageDirectory, makeServiceImage } from "./images.ts";

const missing = findMissingRequirement();

interface Application {
  readonly name: string;
  readonly deployments: number;
  /** A deployment from whose pod services are requested: the address, and the name that the service answers. */
  readonly client: string;
  readonly requests: readonly (readonly [address: string, answer: string])[];
}

const applications: readonly Application[] = [
  {
    name: "guestbook",
    deployments: 3,
    client: "frontend",
    requests: [
      ["redis-leader:6379", "redis-leader"],
      ["redis-follower.guestbook:6379", "redis-follower"],
      ["frontend.guestbook.svc.cluster.local", "frontend"],
    ],
  },
  {
    name: "poll",
    deployments: 5,
    client: "worker",
    requests: [
      ["db:5432", "db"],
      ["redis.poll.svc:6379", "redis"],
      ["vote:8080", "vote"],
    ],
  },
  {
    name: "online-shop",
    deployments: 12,
    client: "checkoutservice",
    requests: [
      ["paymentservice:50051", "paymentservice"],
      ["redis-cart:6379", "redis-cart"],
      ["frontend", "frontend"],
    ],
  },
];

t.setTimeout(400_000);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("svc up runs applications of many services", { timeout: 400_000 }, async (t) => {
    using images = new ImageDirectory([makeServiceImage]);
    await using cluster = await TestCluster.create({ program: programs.bundle, imageDir: images.path });
    await cluster.start("--stop-pods");
    for (const application of applications) {
      await t.test(application.name, (t) => testApplication(t, cluster, application));
    }
    await t.test("services from outside", (t) => testFromOutside(t, cluster));
    t.equal(await cluster.stop(), 0, "a clean stop");
    t.same(await cluster.remains(), [], "no remains");
  });
}

async function testApplication(
  t: Test,
  cluster: TestCluster,
  { name, deployments, client, requests }: Application,
): Promise<void> {
  const commands = new Commands(t, cluster, name);
  await commands.kubectl(`create namespace ${name}`);
  await commands.kubectl(`apply -f ${join(root, "testdata/applications", `${name}.yaml`)}`);
  await commands.kubectl("wait --for=condition=Available deployment --all --timeout=110s");
  await commands.kubectl("wait --for=condition=Ready pod --all --timeout=30s");
  const names = await commands.value("deployments", ".items[*].metadata.name");
  t.equal(names.split(" ").length, deployments, names);
  for (const [address, answer] of requests) {
    const text = await commands.kubectl(`exec deployment/${client} -- wget -q -O - http://${address}/`);
    t.equal(text.trim(), answer, `${client} requests ${address}`);
  }
}

async function testFromOutside(t: Test, cluster: TestCluster): Promise<void> {
  const commands = new Commands(t, cluster, "online-shop");
  const log = await commands.kubectl("logs deployment/loadgenerator --tail=3");
  t.match(log, /^frontend$/m, "the load generator is answered");
  const external = await commands.value("service/frontend-external", ".status.loadBalancer.ingress[0].ip");
  t.equal(await page(`http://${external}:8880/`), "frontend", "the load balancer's address");
  t.equal(await page(`http://${external}:31000/`), "vote", "a node port");
  t.equal(await page(`http://${external}:31001/`), "result", "another node port");
}

async function page(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
  return (await response.text()).trim();
}
