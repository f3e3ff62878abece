/** What a node costs its API server: a Lease every 10 s, a status every 5 min, watches, and the pods' writes. */
import { Connection, type Credentials, expectStatus } from "./load.ts";

const HEARTBEAT_MS = 10_000;
const STATUS_REPORT_MS = 300_000;
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const PODS = "/api/v1/namespaces/default/pods";
const EVENTS = "/api/v1/namespaces/default/events";
const STRATEGIC_MERGE_PATCH = { type: "application/strategic-merge-patch+json" };
/** As many as an agent reports at most. */
const IMAGES = 50;

export interface WriteObserver {
  observe(milliseconds: number): void;
  fail(error: unknown): void;
}

const now = (): string => new Date().toISOString().replace(/\.\d+/, "");
const nowMicro = (): string => new Date().toISOString().replace("Z", "000Z");

export class HollowNode implements Disposable {
  readonly name: string;
  readonly #connection: Connection;
  readonly #observer: WriteObserver;
  readonly #timers: NodeJS.Timeout[] = [];
  #leaseVersion = "";
  /** Changes of pods received by the watch. */
  received = 0;

  constructor(name: string, credentials: Credentials, observer: WriteObserver) {
    this.name = name;
    this.#connection = new Connection(credentials);
    this.#observer = observer;
  }

  /** Registers the node, starts its watches and heartbeats. */
  async start(): Promise<void> {
    const labels = { "kubernetes.io/hostname": this.name, "kubernetes.io/os": "linux" };
    const node = { metadata: { name: this.name, labels }, status: this.#status() };
    expectStatus(await this.#connection.request("POST", "/api/v1/nodes", node), 201);
    const lease = { metadata: { name: this.name }, spec: this.#leaseSpec() };
    this.#readLease(await this.#connection.request("POST", LEASES, lease), 201);
    await this.#watch("/api/v1/nodes", `metadata.name=${this.name}`);
    await this.#watch("/api/v1/pods", `spec.nodeName=${this.name}`);
    this.#repeat(HEARTBEAT_MS, () => this.#renewLease());
    this.#repeat(STATUS_REPORT_MS, () => this.#reportStatus());
  }

  /** The writes of a pod that starts: the pod as bound, its status, an event. */
  async runPod(name: string): Promise<void> {
    const container = { name: "c", image: "registry.example.com/app:1", resources: { requests: { cpu: "10m" } } };
    const spec = { nodeName: this.name, containers: [container], terminationGracePeriodSeconds: 0 };
    await this.#write("POST", PODS, { metadata: { name, labels: { app: "app" } }, spec }, 201);
    await this.#write("PATCH", `${PODS}/${name}/status`, { status: podStatus() }, 200);
    const involvedObject = { kind: "Pod", apiVersion: "v1", namespace: "default", name };
    const event = {
      metadata: { name: `${name}.${Date.now().toString(16)}` },
      involvedObject,
      reason: "Started",
      message: "Started container c",
      type: "Normal",
      source: { component: "kubelet", host: this.name },
      firstTimestamp: now(),
      lastTimestamp: now(),
      count: 1,
    };
    await this.#write("POST", EVENTS, event, 201);
  }

  async deletePod(name: string): Promise<void> {
    await this.#write("DELETE", `${PODS}/${name}`, { gracePeriodSeconds: 0 }, 200);
  }

  async #watch(path: string, fieldSelector: string): Promise<void> {
    const query = `fieldSelector=${encodeURIComponent(fieldSelector)}`;
    const { body } = await this.#connection.request("GET", `${path}?${query}&resourceVersion=0`);
    const { resourceVersion } = (JSON.parse(body) as { readonly metadata: { readonly resourceVersion: string } })
      .metadata;
    const follow = `${path}?${query}&watch=true&resourceVersion=${resourceVersion}`;
    this.#connection.request("GET", follow, undefined, { onData: () => this.received++ }).catch(() => undefined);
  }

  #repeat(intervalMs: number, work: () => Promise<void>): void {
    const run = (): void => void work().catch((error: unknown) => this.#observer.fail(error));
    const first = setTimeout(() => {
      run();
      this.#timers.push(setInterval(run, intervalMs));
    }, Math.random() * intervalMs);
    this.#timers.push(first);
  }

  async #renewLease(): Promise<void> {
    const metadata = { name: this.name, resourceVersion: this.#leaseVersion };
    const began = performance.now();
    const reply = await this.#connection.request("PUT", `${LEASES}/${this.name}`, {
      metadata,
      spec: this.#leaseSpec(),
    });
    this.#observer.observe(performance.now() - began);
    // The lease is read again, as agents do: a write that failed may have been stored.
    if (reply.status !== 200) this.#readLease(await this.#connection.request("GET", `${LEASES}/${this.name}`), 200);
    expectStatus(reply, 200);
    this.#readLease(reply, 200);
  }

  #readLease(reply: Awaited<ReturnType<Connection["request"]>>, expected: number): void {
    expectStatus(reply, expected);
    const { metadata } = JSON.parse(reply.body) as { readonly metadata: { readonly resourceVersion: string } };
    this.#leaseVersion = metadata.resourceVersion;
  }

  #leaseSpec(): unknown {
    return { holderIdentity: this.name, leaseDurationSeconds: 40, renewTime: nowMicro() };
  }

  #reportStatus(): Promise<void> {
    return this.#write("PATCH", `/api/v1/nodes/${this.name}/status`, { status: this.#status() }, 200);
  }

  #status(): unknown {
    const amounts = { cpu: "8", memory: "32Gi", pods: "110", "ephemeral-storage": "100Gi" };
    const condition = { lastHeartbeatTime: now(), lastTransitionTime: now(), reason: "KubeletReady", message: "ready" };
    const types = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
    const conditions = types.map((type) => ({ type, status: type === "Ready" ? "True" : "False", ...condition }));
    const images = Array.from({ length: IMAGES }, (_, i) => ({
      names: [`registry.example.com/app-${i}@sha256:${"a".repeat(64)}`, `registry.example.com/app-${i}:1`],
      sizeBytes: 10_000_000 + i,
    }));
    return { capacity: amounts, allocatable: amounts, conditions, images };
  }

  async #write(method: string, path: string, body: unknown, expected: number): Promise<void> {
    const began = performance.now();
    const options = method === "PATCH" ? STRATEGIC_MERGE_PATCH : {};
    const reply = await this.#connection.request(method, path, body, options);
    this.#observer.observe(performance.now() - began);
    expectStatus(reply, expected);
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#connection[Symbol.dispose]();
  }
}

function podStatus(): unknown {
  const types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
  const conditions = types.map((type) => ({ type, status: "True", lastTransitionTime: now() }));
  const image = "registry.example.com/app:1";
  const containerStatus = {
    name: "c",
    image,
    imageID: `${image}@sha256:${"a".repeat(64)}`,
    containerID: `containerd://${"b".repeat(64)}`,
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt: now() } },
  };
  return {
    phase: "Running",
    conditions,
    podIP: "10.1.2.3",
    podIPs: [{ ip: "10.1.2.3" }],
    containerStatuses: [containerStatus],
  };
}
