import t from "tap";
import { storageVersionKind } from "../../api/apiserverinternal/storage-version/kind.ts";
import type { StorageVersion } from "../../api/apiserverinternal/storage-version/schema.ts";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { objectsOf, syncOnce, type Write } from "../../testing/controllers/sync-once.ts";
import { runStorageVersionCollector } from "./storage-version-collector.ts";

const label = { "apiserver.kubernetes.io/identity": "kube-apiserver" };

function lease(name: string, labels: Readonly<Record<string, string>> = label): Lease {
  return { metadata: { name, namespace: "kube-system", labels } };
}

function published(...servers: readonly (readonly [id: string, encoding: string])[]): StorageVersion {
  const storageVersions = servers.map(([apiServerID, encodingVersion]) => ({ apiServerID, encodingVersion }));
  return { metadata: { name: "apps.deployments" }, spec: {}, status: { storageVersions } };
}

async function collect(object: StorageVersion, leases: readonly Lease[]) {
  const written: Write[] = [];
  const show = (write: Write): string => {
    written.push(write);
    return `${write.verb} ${write.object.metadata?.name}`;
  };
  const owner = objectsOf(storageVersionKind, object);
  const writes = await syncOnce(runStorageVersionCollector, owner, [objectsOf(leaseKind, ...leases)], { show });
  return { writes, status: (written[0]?.object as StorageVersion | undefined)?.status };
}

t.test("the collector leaves what servers with a lease have published", async (t) => {
  t.same((await collect(published(["a", "apps/v1"], ["b", "apps/v1"]), [lease("a"), lease("b")])).writes, []);
});

t.test("the collector removes what other servers have published, and sets the common version", async (t) => {
  const object = published(["a", "apps/v1"], ["b", "apps/v2"], ["c", "apps/v2"]);
  const { writes, status } = await collect(object, [lease("a"), lease("c", {})]);
  t.same(writes, ["status apps.deployments"]);
  t.match(status, {
    storageVersions: [{ apiServerID: "a" }],
    commonEncodingVersion: "apps/v1",
    conditions: [{ type: "AllEncodingVersionsEqual", status: "True", reason: "CommonEncodingVersionSet" }],
  });
  t.equal(status?.storageVersions?.length, 1);
});

t.test("the collector deletes an object of which nothing is left", async (t) => {
  t.same((await collect(published(["b", "apps/v1"]), [lease("a")])).writes, ["delete apps.deployments"]);
});
