/** Gives services their addresses and their ports on the nodes: see `Allocator`. */
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import type { Service, ServiceSpec } from "../../api/core/service/schema.ts";
import { syncLinkedFields } from "../../api/core/service/strategy.ts";
import { isHeadless, specOf } from "../../api/core/service/types.ts";
import { invalid, isNotFound } from "../../api/status.ts";
import { type FieldError, invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { IpFamily } from "../../std/net/ip.ts";
import type { Allocation, Allocator } from "../allocator.ts";
import { remove } from "../delete.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { metadataOf } from "../write/object-metadata.ts";
import { AddressUnavailable, type ServiceAddresses, type ServiceName } from "./addresses.ts";
import { type ClusterFamilies, keepsPreference, withFamilies } from "./families.ts";
import { internalError } from "./internal-error.ts";
import type { NodePorts, PortTaking } from "./node-ports.ts";
import { wantsNodePorts, withNodePorts } from "./port-assignment.ts";

export interface ServiceAllocatorParts {
  readonly families: ClusterFamilies;
  readonly addresses: ServiceAddresses;
  readonly ports: NodePorts;
  /** Those of a service go with it, so that a new one of its name does not send to the old one's pods. */
  readonly endpoints: Registry<Endpoints>;
  readonly log: Logger;
}

export class ServiceAllocator implements Allocator<Service> {
  readonly #parts: ServiceAllocatorParts;

  constructor(parts: ServiceAllocatorParts) {
    this.#parts = parts;
  }

  async allocate(
    scope: Scope,
    next: Service,
    previous: Service | undefined,
    dryRun: boolean,
  ): Promise<Allocation<Service>> {
    const { families, ports } = this.#parts;
    const { service, errors } = withFamilies(syncLinkedFields(next, previous), previous, families);
    if (errors.length > 0) refuse(scope, next, errors);
    const name = nameOf(scope, next);
    const old = previous === undefined ? undefined : specOf(previous);
    const plan = planOf(specOf(service), old);
    const taken: string[] = [];
    const giveBackAddresses = async (): Promise<void> => await this.#free(scope, name, taken.splice(0));
    try {
      const addressed = await this.#withAddresses(scope, service, plan, dryRun, taken);
      // Most services have no ports on the nodes, and need not know who has which.
      const [object, taking] = wantsNodePorts(specOf(addressed))
        ? await ports.take(scope, dryRun, (from) => withPorts(scope, addressed, old, from))
        : [addressed, undefined];
      return {
        object,
        commit: async (written) => {
          if (taking !== undefined) await ports.keep(taking, written);
          if (!dryRun) await this.#free(scope, name, plan.release);
        },
        rollback: async () => {
          if (taking !== undefined) await ports.giveBack(taking);
          await giveBackAddresses();
        },
      };
    } catch (error) {
      await giveBackAddresses();
      throw error;
    }
  }

  async release(scope: Scope, service: Service): Promise<void> {
    const spec = specOf(service);
    const name = nameOf(scope, service);
    if (!isHeadless(spec)) await this.#free(scope, name, spec.clusterIPs ?? []);
    const { endpoints, log } = this.#parts;
    try {
      await remove(endpoints, { ...detached(scope), namespace: name.namespace }, name.name);
    } catch (error) {
      if (!isNotFound(error)) log.error("Leaving the endpoints of a service behind", error, { service: name.name });
    }
  }

  async #free(scope: Scope, name: ServiceName, ips: readonly string[]): Promise<void> {
    const { addresses, log } = this.#parts;
    for (const ip of ips) {
      try {
        await addresses.release(detached(scope), name, ip);
      } catch (error) {
        log.error("Leaving an address taken until the next start", error, { address: ip, service: name.name });
      }
    }
  }

  /** Notes in `taken` what is to be given back should the write fail. */
  async #withAddresses(
    scope: Scope,
    service: Service,
    plan: AddressPlan,
    dryRun: boolean,
    taken: string[],
  ): Promise<Service> {
    if (plan.take.length === 0) return service;
    const spec = specOf(service);
    const clusterIPs = [...(spec.clusterIPs ?? [])];
    for (const { at, family } of plan.take) {
      const ip = await this.#address(scope, service, clusterIPs[at] ?? "", family, dryRun);
      if (!dryRun) taken.push(ip);
      clusterIPs[at] = ip;
    }
    return { ...service, spec: { ...spec, clusterIPs, clusterIP: clusterIPs[0] } };
  }

  /** Throws a `StatusError`. */
  async #address(scope: Scope, service: Service, wanted: string, family: IpFamily, dryRun: boolean): Promise<string> {
    const { addresses } = this.#parts;
    const name = nameOf(scope, service);
    try {
      if (wanted === "") return await addresses.any(scope, name, family, dryRun);
      return await addresses.one(scope, name, wanted, dryRun);
    } catch (error) {
      if (!(error instanceof AddressUnavailable)) throw error;
      if (wanted === "") throw internalError(`failed to allocate a serviceIP: ${error.message}`);
      const detail = `failed to allocate IP ${wanted}: ${error.message}`;
      return refuse(scope, service, [invalidField("spec.clusterIPs", specOf(service).clusterIPs, detail)]);
    }
  }
}

/** The client may be gone by now; nothing is to stay behind for that. */
function detached(scope: Scope): Scope {
  return { ...scope, signal: new AbortController().signal };
}

function withPorts(scope: Scope, service: Service, old: ServiceSpec | undefined, taking: PortTaking): Service {
  return { ...service, spec: withNodePorts(specOf(service), old, taking, (errors) => refuse(scope, service, errors)) };
}

/** Places in `clusterIPs` that are to be filled, and addresses that are free once the service is written. */
interface AddressPlan {
  readonly take: readonly { readonly at: number; readonly family: IpFamily }[];
  readonly release: readonly string[];
}

const NOTHING: AddressPlan = { take: [], release: [] };

function planOf(spec: ServiceSpec, old: ServiceSpec | undefined): AddressPlan {
  const families = (spec.ipFamilies ?? []).map((family, at) => ({ at, family }));
  const named = spec.type === "ExternalName";
  if (old === undefined || old.type === "ExternalName") {
    return named || spec.clusterIPs?.[0] === "None" ? NOTHING : { take: families, release: [] };
  }
  if (keepsPreference(spec, old) || isHeadless(old)) return NOTHING;
  const held = old.clusterIPs ?? [];
  if (named) return { take: [], release: held };
  const before = (old.ipFamilies ?? []).length;
  if (before === 1 && families.length === 2) return { take: families.slice(1), release: [] };
  return { take: [], release: before === 2 && families.length === 1 ? held.slice(1) : [] };
}

function nameOf(scope: Scope, service: Service): ServiceName {
  const { name = "", namespace = scope.namespace } = metadataOf(service);
  return { namespace, name };
}

function refuse(scope: Scope, service: Service, errors: readonly FieldError[]): never {
  const { name = "" } = metadataOf(service);
  throw invalid({ group: scope.group, resource: "Service", name }, errors, renderFieldError);
}
