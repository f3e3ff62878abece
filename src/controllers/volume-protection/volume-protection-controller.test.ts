import t from "tap";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Client, ClientWatchEvent } from "../../client/client.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { ControllerDeps } from "../controller.ts";
import { defaultControllerOptions } from "../controller-options.ts";
import { runPvcProtectionController, runPvProtectionController } from "./volume-protection-controller.ts";

const DELETED = { namespace: "ns", deletionTimestamp: "2026-01-01T00:00:00Z" };

/** The remaining finalizers of objects that the controller updated. */
type Released = Record<string, readonly string[]>;

function serve(objects: Readonly<Record<string, ApiObject[]>>, released: Released, gone: Promise<Pod>): Client {
  const client: Partial<Client> = {
    list: async (kind: Kind) => ({ items: (objects[kind.plural] ?? []) as never[], resourceVersion: "1" }),
    watch: (kind: Kind, _query: unknown, signal: AbortSignal) =>
      (kind.plural === "pods" ? ending(gone) : silent(signal)) as never,
    update: async (_kind: unknown, object: ApiObject) => {
      released[object.metadata?.name ?? ""] = object.metadata?.finalizers ?? [];
      return object as never;
    },
  };
  return client as Client;
}

async function* silent(signal: AbortSignal): AsyncGenerator<ClientWatchEvent<never>> {
  await new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function* ending(gone: Promise<Pod>): AsyncGenerator<ClientWatchEvent<Pod>> {
  yield { type: "DELETED", object: await gone };
}

async function run(
  controller: (deps: ControllerDeps) => Promise<void>,
  objects: Readonly<Record<string, ApiObject[]>>,
  meanwhile: () => Pod | undefined = () => undefined,
): Promise<Released> {
  const released: Released = {};
  const clock = new FakeClock();
  const stop = new AbortController();
  const gone = Promise.withResolvers<Pod>();
  const client = serve(objects, released, gone.promise);
  const common = { clock, random: seededRandom(1), log: silentLogger };
  const running = controller({
    client,
    observer: client,
    informers: createSharedInformers({ client, ...common }, stop.signal),
    ...common,
    kinds: [],
    options: defaultControllerOptions,
    signal: stop.signal,
  });
  await clock.advance(100);
  const pod = meanwhile();
  if (pod !== undefined) gone.resolve(pod);
  await clock.advance(2_000);
  stop.abort();
  await running;
  return released;
}

t.test(
  "runPvcProtectionController() protects claims until they are deleted and no scheduled pod uses them",
  async (t) => {
    const claim = (name: string, metadata: object = DELETED): PersistentVolumeClaim => ({
      metadata: { name, finalizers: ["kubernetes.io/pvc-protection", "example.com/kept"], ...metadata },
    });
    const pod = (name: string, nodeName: string | undefined, volume: object): Pod => ({
      metadata: { name, namespace: "ns", uid: name },
      spec: { nodeName, containers: [], volumes: [{ name: "data", ...volume }] },
    });
    // It waits for its claims, in a foreground deletion.
    const shutDown = (of: Pod): Pod => ({
      ...of,
      metadata: { ...of.metadata, ...DELETED, deletionGracePeriodSeconds: 0, finalizers: ["foregroundDeletion"] },
    });
    const ownedBy = (uid: string) => ({ apiVersion: "v1", kind: "Pod", name: uid, uid, controller: true });
    const pods = [
      pod("a", "node", { persistentVolumeClaim: { claimName: "used" } }),
      pod("b", "node", { ephemeral: {} }),
      shutDown(pod("d", "node", { ephemeral: {} })),
      pod("c", undefined, { persistentVolumeClaim: { claimName: "waited-for" } }),
    ];
    const persistentvolumeclaims = [
      claim("used"),
      claim("b-data", { ...DELETED, ownerReferences: [ownedBy("b")] }),
      claim("d-data", { ...DELETED, ownerReferences: [ownedBy("d")] }),
      claim("unprotected", { namespace: "ns", finalizers: undefined }),
      claim("waited-for"),
      claim("unused"),
      claim("wanted", { namespace: "ns" }),
    ];
    t.same(await run(runPvcProtectionController, { persistentvolumeclaims, pods }), {
      "d-data": ["example.com/kept"],
      unprotected: ["kubernetes.io/pvc-protection"],
      "waited-for": ["example.com/kept"],
      unused: ["example.com/kept"],
    });
    t.match(
      await run(runPvcProtectionController, { persistentvolumeclaims, pods }, () => pods.splice(0, 1)[0]),
      { used: ["example.com/kept"] },
      "its pod was deleted later",
    );
  },
);

t.test("runPvProtectionController() protects volumes until they are deleted and not bound", async (t) => {
  const volume = (name: string, phase: "Bound" | "Released"): PersistentVolume => ({
    metadata: {
      name,
      deletionTimestamp: DELETED.deletionTimestamp,
      finalizers: ["kubernetes.io/pv-protection"],
    },
    status: { phase },
  });
  const persistentvolumes = [volume("bound", "Bound"), volume("released", "Released")];
  const unprotected = { metadata: { name: "unprotected" }, status: { phase: "Released" as const } };
  t.same(await run(runPvProtectionController, { persistentvolumes: [...persistentvolumes, unprotected] }), {
    released: [],
    unprotected: ["kubernetes.io/pv-protection"],
  });
});
