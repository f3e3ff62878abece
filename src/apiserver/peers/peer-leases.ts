/** The addresses at which the API servers of the cluster reach each other: keys that each server renews. */
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import type { Registries } from "../../registry/registries.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import type { HostPort } from "../aggregation/service-resolver.ts";
import { ignoreConflict } from "../control-plane/ensure.ts";

const LEASE_SECONDS = 15;
const IDENTITY = "apiserverIdentity";

export class PeerLeases {
  readonly #leases: ObjectStore<Endpoints>;

  constructor(registries: Registries) {
    const kind = { ...endpointsKind, namespaced: false, storageName: "peerserverleases" };
    this.#leases = new ObjectStore({ ...registries.deps, kind });
  }

  async renew(serverId: string, { host, port }: HostPort): Promise<void> {
    const key = this.#leases.key(undefined, serverId);
    const ttlSeconds = LEASE_SECONDS;
    const existing = await this.#leases.get(key);
    // The generation makes each write a change, which renews the time to live.
    const generation = (existing?.metadata?.generation ?? 0) + 1;
    const lease: Endpoints = {
      metadata: { name: serverId, generation, labels: { [IDENTITY]: serverId } },
      subsets: [{ addresses: [{ ip: host }], ports: [{ name: "https", port, protocol: "TCP" }] }],
    };
    if (existing === undefined) await ignoreConflict(this.#leases.create(key, lease, { ttlSeconds }));
    else await ignoreConflict(this.#leases.guaranteedUpdate(key, () => lease, { ttlSeconds: () => ttlSeconds }));
  }

  async remove(serverId: string): Promise<void> {
    await ignoreConflict(this.#leases.delete(this.#leases.key(undefined, serverId)));
  }

  /** Undefined: the server does not run. */
  async find(serverId: string): Promise<HostPort | undefined> {
    const [subset] = (await this.#leases.get(this.#leases.key(undefined, serverId)))?.subsets ?? [];
    const [host, port] = [subset?.addresses?.[0]?.ip, subset?.ports?.[0]?.port];
    return host === undefined || port === undefined ? undefined : { host, port };
  }
}
