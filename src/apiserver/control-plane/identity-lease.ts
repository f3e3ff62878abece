/** The identity lease of each API server in `kube-system`. */
import { createHash } from "node:crypto";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { remove } from "../../registry/delete.ts";
import type { Registries } from "../../registry/registries.ts";
import { formatMicroTime } from "../../schema/value/time.ts";
import { randomUuid } from "../../std/crypto/random.ts";
import { ensure, ignoreConflict, systemScope } from "./ensure.ts";

const NAMESPACE = "kube-system";
const IDENTITY = "apiserver.kubernetes.io/identity";
const COMPONENT = "kube-apiserver";
const HOST = "kubernetes.io/hostname";
const SECONDS = 3600;

/** The base32 alphabet of RFC 4648, in lower case. */
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/**
 * The name of the lease: Kubernetes' hash of the host and the component, so that its server and this one on a host have
 * one lease, one after the other.
 */
export function serverIdentity(host: string): string {
  const hashed = Buffer.concat([host, COMPONENT].flatMap((text) => [lengthOf(text), Buffer.from(text)]));
  const bytes = createHash("sha256").update(hashed).digest().subarray(0, 16);
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const letters = (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, "0"), 2)]);
  return `apiserver-${letters.join("")}`;
}

/** In bytes, as a big-endian number of 16 bits. */
function lengthOf(text: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(text));
  return length;
}

export class IdentityLease {
  readonly #registries: Registries;
  readonly #signal: AbortSignal;
  readonly #host: string;
  readonly #holder: string;

  constructor(registries: Registries, host: string, signal: AbortSignal) {
    this.#registries = registries;
    this.#signal = signal;
    this.#host = host;
    this.#holder = `${serverIdentity(host)}_${randomUuid(registries.deps.random)}`;
  }

  async renew(): Promise<void> {
    const { clock } = this.#registries.deps;
    const labels = { [IDENTITY]: COMPONENT, [HOST]: this.#host };
    const name = serverIdentity(this.#host);
    const renewTime = formatMicroTime(clock.now());
    const spec = { holderIdentity: this.#holder, leaseDurationSeconds: SECONDS, renewTime };
    const scope = systemScope(NAMESPACE, this.#signal);
    const registry = this.#registries.of(leaseKind);
    await ensure(registry, scope, { metadata: { name, namespace: NAMESPACE, labels }, spec }, (found) => ({
      ...found,
      metadata: { ...found.metadata, labels: { ...found.metadata?.labels, ...labels } },
      spec: { ...found.spec, ...spec },
    }));
  }

  /** Deletes the expired leases of other servers. */
  async collectStale(): Promise<void> {
    const registry = this.#registries.of(leaseKind);
    const scope = systemScope(NAMESPACE, this.#signal);
    const { items } = await registry.objects.list(registry.prefix(scope));
    for (const lease of items.filter((each) => this.#isStale(each))) {
      const { name = "", uid, resourceVersion } = lease.metadata ?? {};
      await ignoreConflict(remove(registry, scope, name, { preconditions: { uid, resourceVersion } }));
    }
  }

  #isStale({ metadata, spec }: Lease): boolean {
    if (metadata?.labels?.[IDENTITY] !== COMPONENT) return false;
    const { renewTime = "", leaseDurationSeconds = 0 } = spec ?? {};
    const renewed = Date.parse(renewTime);
    return Number.isNaN(renewed) || renewed + leaseDurationSeconds * 1000 < this.#registries.deps.clock.now();
  }
}
