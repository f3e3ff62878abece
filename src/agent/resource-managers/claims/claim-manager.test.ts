import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ResourceClaim } from "../../../api/resource/schemas.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { serveUnix } from "../../plugins/unix-server.ts";
import { readClaimCheckpoint } from "./claim-checkpoint.ts";
import { ClaimDrivers } from "./claim-drivers.ts";
import { ClaimManager } from "./claim-manager.ts";
import { type DriverClaim, driverServices } from "./messages.ts";

const DRIVER = "gpu.example.com";
const { signal } = new AbortController();

function claim(name: string, pods: readonly string[], requests: readonly string[] = ["gpu"]): ResourceClaim {
  const results = requests.map((request) => ({ request, driver: DRIVER, pool: "n1", device: `${name}-${request}` }));
  return {
    metadata: { name, namespace: "default", uid: `uid-${name}` },
    spec: {},
    status: {
      allocation: { devices: { results } },
      reservedFor: pods.map((uid) => ({ resource: "pods", name: uid, uid })),
    },
  } as ResourceClaim;
}

function pod(uid: string, claimName: string, request?: string): Pod {
  const claims = [{ name: "dev", ...(request === undefined ? {} : { request }) }];
  return {
    metadata: { name: uid, namespace: "default", uid },
    spec: {
      resourceClaims: [{ name: "dev", resourceClaimName: claimName }],
      containers: [{ name: "c", resources: { claims } }],
    },
  };
}

class Node implements AsyncDisposable {
  readonly claims = new Map<string, ResourceClaim>();
  readonly calls: string[] = [];
  readonly registry = new MetricRegistry();
  readonly drivers = new ClaimDrivers({
    clock: systemClock,
    registry: this.registry,
    onRegistered: () => {},
    onDeregistered: () => {},
  });
  /** By claim: the driver's error. */
  readonly failures = new Map<string, string>();
  readonly directory: string;
  #manager: ClaimManager | undefined;
  readonly #stack = new AsyncDisposableStack();

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async open(): Promise<Node> {
    // The path of a socket is short.
    const node = new Node(await mkdtemp(join(tmpdir(), "svc-claims-")));
    await node.restart();
    return node;
  }

  get manager(): ClaimManager {
    if (this.#manager === undefined) throw new Error("not open");
    return this.#manager;
  }

  async restart(): Promise<void> {
    const { drivers, directory: rootDir } = this;
    this.#manager = await ClaimManager.open({
      rootDir,
      drivers,
      readClaim: async (_namespace, name) => {
        const found = this.claims.get(name);
        if (found === undefined) throw new Error(`resourceclaims.resource.k8s.io "${name}" not found`);
        return found;
      },
      registry: new MetricRegistry(),
      clock: systemClock,
      log: silentLogger,
    });
  }

  /** A driver on a real socket. */
  async plug(version: keyof typeof driverServices = "v1beta1.DRAPlugin"): Promise<void> {
    const endpoint = join(this.directory, "dra.sock");
    const service = driverServices[version];
    const answer =
      (method: string, make: (claim: DriverClaim) => object) =>
      async ({ claims }: { claims: readonly DriverClaim[] }) => {
        this.calls.push(`${method} ${claims.map(({ name }) => name).join(",")}`);
        const entries = claims.map((each) => {
          const error = this.failures.get(each.name ?? "");
          return [each.uid, error === undefined ? make(each) : { error }] as const;
        });
        return { claims: Object.fromEntries(entries) };
      };
    const server = await serveUnix(endpoint, service, {
      prepare: answer("prepare", ({ name = "" }) => ({
        devices: (this.claims.get(name)?.status?.allocation?.devices?.results ?? []).map(({ request, device }) => ({
          requestNames: [request],
          poolName: "n1",
          deviceName: device,
          cdiDeviceIds: [`example.com/gpu=${device}`],
        })),
      })),
      unprepare: answer("unprepare", () => ({})),
    });
    this.#stack.use(server);
    await this.drivers.register({ type: "DRAPlugin", name: DRIVER, endpoint, versions: [version] });
  }

  devices(of: Pod): string {
    const [container] = of.spec?.containers ?? [];
    return container === undefined ? "" : this.manager.listCdiDevices(of, container).join(" ");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drivers[Symbol.dispose]();
    await this.#stack.disposeAsync();
    await rm(this.directory, { recursive: true, force: true });
  }
}

t.test("a claim is prepared once, and released with its last pod", async (t) => {
  await using node = await Node.open();
  await node.plug();
  node.claims.set("shared", claim("shared", ["a", "b"]));
  await node.manager.prepare(pod("a", "shared"), signal);
  await node.manager.prepare(pod("b", "shared"), signal);
  t.equal(node.devices(pod("a", "shared")), "example.com/gpu=shared-gpu");
  await node.manager.unprepare(pod("a", "shared"), signal);
  t.same(node.calls, ["prepare shared"]);
  await node.manager.unprepare(pod("b", "shared"), signal);
  await node.manager.unprepare(pod("b", "shared"), signal);
  t.same(node.calls, ["prepare shared", "unprepare shared"]);
  t.throws(() => node.devices(pod("b", "shared")), /unable to get claim info for claim shared in namespace default/);
  t.match(
    formatMetrics([node.registry], "prometheus"),
    /dra_grpc_operations_duration_seconds_count{driver_name="gpu.example.com",grpc_status_code="OK",method_name="\/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin\/NodePrepareResources"} 1/,
  );
});

t.test("a container gets the devices of the request that it names", async (t) => {
  await using node = await Node.open();
  await node.plug("v1alpha4.Node");
  node.claims.set("two", claim("two", ["a"], ["big", "small/fast"]));
  await node.manager.prepare(pod("a", "two"), signal);
  t.equal(node.devices(pod("a", "two")), "example.com/gpu=two-big example.com/gpu=two-small/fast");
  t.equal(node.devices(pod("a", "two", "big")), "example.com/gpu=two-big");
  t.equal(node.devices(pod("a", "two", "small")), "example.com/gpu=two-small/fast");
});

t.test("claims that the pod may not use, or that do not exist, are refused", async (t) => {
  await using node = await Node.open();
  const prepare = (of: Pod) => node.manager.prepare(of, signal);
  await t.rejects(prepare(pod("a", "none")), /failed to fetch ResourceClaim none referenced by pod a: .*not found/);
  node.claims.set("other", claim("other", ["b"]));
  await t.rejects(prepare(pod("a", "other")), /pod a\(a\) is not allowed to use resource claim other\(uid-other\)/);
  const made: Pod = {
    ...pod("a", ""),
    spec: { containers: [], resourceClaims: [{ name: "dev", resourceClaimTemplateName: "t" }] },
  };
  await t.rejects(prepare(made), /prepare resource claim: pod "default\/a": ResourceClaim not created yet/);
  node.claims.set("made", claim("made", ["a"]));
  const withStatus = { ...made, status: { resourceClaimStatuses: [{ name: "dev", resourceClaimName: "made" }] } };
  await t.rejects(prepare(withStatus), /ResourceClaim default\/made was not created for pod default\/a/);
  node.claims.set("mine", claim("mine", ["a"]));
  await t.rejects(
    prepare(pod("a", "mine")),
    /failed to get gRPC client for driver gpu.example.com: plugin name gpu.example.com not found in the list of/,
  );
  await node.plug();
  node.failures.set("mine", "no such device");
  await t.rejects(prepare(pod("a", "mine")), /NodePrepareResources failed for claim default\/mine: no such device/);
  node.failures.clear();
  await t.resolves(prepare(pod("a", "mine")), "tried again");
});

t.test("an agent that restarts releases what it had prepared", async (t) => {
  await using node = await Node.open();
  await node.plug();
  node.claims.set("mine", claim("mine", ["a"]));
  await node.manager.prepare(pod("a", "mine"), signal);
  await node.restart();
  t.equal(node.devices(pod("a", "mine")), "example.com/gpu=mine-gpu");
  node.failures.set("mine", "busy");
  await t.rejects(
    node.manager.unprepare(pod("a", "mine"), signal),
    /NodeUnprepareResources failed for claim default\/mine: busy/,
  );
  node.failures.clear();
  await node.manager.unprepare(pod("a", "mine"), signal);
  t.same(await readClaimCheckpoint(join(node.directory, "dra_manager_state")), []);
});

t.test("the checkpoint has kubelet's format", async (t) => {
  const state = String.raw`{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[{\"ClaimUID\":\"067798be-454e-4be4-9047-1aa06aea63f7\",\"ClaimName\":\"example\",\"Namespace\":\"default\",\"PodUIDs\":{\"139cdb46-f989-4f17-9561-ca10cfb509a6\":{}},\"DriverState\":{\"test-driver.cdi.k8s.io\":{\"Devices\":[{\"PoolName\":\"worker-1\",\"DeviceName\":\"dev-1\",\"RequestNames\":[\"test request\"],\"CDIDeviceIDs\":[\"example.com/example=cdi-example\"]}]}}}]}","Checksum":1656016162}`;
  const files = t.testdir({ state, wrong: state.replace("1656016162", "1") });
  const [read] = await readClaimCheckpoint(join(files, "state"));
  t.match(read, { name: "example", namespace: "default" });
  t.match(read?.drivers.get("test-driver.cdi.k8s.io"), [{ deviceName: "dev-1" }]);
  await t.rejects(readClaimCheckpoint(join(files, "wrong")), /checkpoint is corrupted/);
});

t.test("drivers that report no version are refused", async (t) => {
  await using node = await Node.open();
  const plugin = { type: "DRAPlugin", name: DRIVER, endpoint: "/x" };
  t.throws(() => node.drivers.validate({ ...plugin, versions: [] }), {
    message: `invalid versions of plugin ${DRIVER}: empty list of supported gRPC services (aka supported versions)`,
  });
  t.doesNotThrow(() => node.drivers.validate({ ...plugin, versions: ["1.0.0"] }), "a driver of an early release");
});

t.test("claims of pods that are not active are released", async (t) => {
  await using node = await Node.open();
  await node.plug();
  node.claims.set("a", claim("a", ["p", "q"]));
  await node.manager.prepare(pod("p", "a"), signal);
  await node.manager.prepare(pod("q", "a"), signal);
  await node.restart();
  await node.manager.reconcile(new Set(["p", "q"]), signal);
  await node.manager.reconcile(new Set(["q"]), signal);
  t.same(node.calls, ["prepare a"], "another pod uses the claim");
  await node.manager.reconcile(new Set(), signal);
  t.same(node.calls, ["prepare a", "unprepare a"]);
  await node.manager.reconcile(new Set(), signal);
  t.equal(node.calls.length, 2);
});
