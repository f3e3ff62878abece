/** Allocates cluster IPs and node ports of services. */
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import type { Service, ServiceSpec } from "../../api/core/service/schema.ts";
import { syncLinkedFields } from "../../api/core/service/strategy.ts";
import { isHeadless, specOf } from "../../api/core/service/types.ts";
import { internalError, invalid, isNotFound } from "../../api/status.ts";
import { type FieldError, invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { IpFamily } from "../../std/net/ip.ts";
import type { Allocation, Allocator } from "../allocator.ts";
import { remove } from "../delete.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { metadataOf } from "../write/object-metadata.ts";
import { AddressUnavailable, type ClusterIpAllocator, type ServiceName } from "./addresses.ts";
import { type ClusterFamilies, keepsPreferDualStack, setIpFamilies } from "./families.ts";
import { type NodePorts, nodePortsOfService, type PortAllocation } from "./node-ports.ts";
import { allocateNodePorts, needsNodePorts } from "./port-assignment.ts";

export interface ServiceAllocatorDeps {
  readonly families: ClusterFamilies;
  readonly addresses: ClusterIpAllocator;
  readonly ports: NodePorts;
  /** Deleted with their service: a new service of the same name must not route to the old one's pods. */
  readonly endpoints: Registry<Endpoints>;
  readonly log: Logger;
}

export class ServiceAllocator implements Allocator<Service> {
  readonly #deps: ServiceAllocatorDeps;

  constructor(deps: ServiceAllocatorDeps) {
    this.#deps = deps;
  }

  async allocate(
    scope: Scope,
    next: Service,
    previous: Service | undefined,
    dryRun: boolean,
  ): Promise<Allocation<Service>> {
    const { families, ports } = this.#deps;
    const { service, errors } = setIpFamilies(syncLinkedFields(next, previous), previous, families);
    if (errors.length > 0) reject(scope, next, errors);
    const name = serviceName(scope, next);
    const old = previous === undefined ? undefined : specOf(previous);
    const plan = planAddresses(specOf(service), old);
    const allocated: string[] = [];
    const releaseAllocated = async (): Promise<void> => await this.#releaseAddresses(scope, name, allocated.splice(0));
    try {
      const addressed = await this.#allocateAddresses(scope, service, plan, dryRun, allocated);
      // Most services have no node ports and need not read which are in use.
      const [object, portAllocation] = needsNodePorts(specOf(addressed))
        ? await ports.allocate(scope, dryRun, (from) => allocatePorts(scope, addressed, old, from))
        : [addressed, undefined];
      return {
        object,
        commit: async (written) => {
          if (dryRun) return;
          await this.#releasePorts(name, portsWithout(previous, written));
          await this.#releaseAddresses(scope, name, plan.release);
        },
        rollback: async () => {
          if (!dryRun) await this.#releasePorts(name, portAllocation?.allocated ?? []);
          await releaseAllocated();
        },
      };
    } catch (error) {
      await releaseAllocated();
      throw error;
    }
  }

  async release(scope: Scope, service: Service): Promise<void> {
    const spec = specOf(service);
    const name = serviceName(scope, service);
    if (!isHeadless(spec)) await this.#releaseAddresses(scope, name, spec.clusterIPs ?? []);
    await this.#releasePorts(name, nodePortsOfService(service));
    const { endpoints, log } = this.#deps;
    try {
      await remove(endpoints, { ...withoutCancellation(scope), namespace: name.namespace }, name.name);
    } catch (error) {
      if (!isNotFound(error)) log.error("Failed to delete the endpoints of a service", error, { service: name.name });
    }
  }

  async #releaseAddresses(scope: Scope, name: ServiceName, ips: readonly string[]): Promise<void> {
    const { addresses, log } = this.#deps;
    for (const ip of ips) {
      try {
        await addresses.release(withoutCancellation(scope), name, ip);
      } catch (error) {
        log.error("Failed to release a cluster IP; it is released at the next start", error, {
          address: ip,
          service: name.name,
        });
      }
    }
  }

  async #releasePorts(name: ServiceName, ports: readonly number[]): Promise<void> {
    try {
      await this.#deps.ports.release(ports);
    } catch (error) {
      this.#deps.log.error("Failed to release node ports; they are released by a later repair", error, {
        ports: ports.join(","),
        service: name.name,
      });
    }
  }

  /** Adds to `allocated` the addresses to release when the write fails. */
  async #allocateAddresses(
    scope: Scope,
    service: Service,
    plan: AddressPlan,
    dryRun: boolean,
    allocated: string[],
  ): Promise<Service> {
    if (plan.allocate.length === 0) return service;
    const spec = specOf(service);
    const clusterIPs = [...(spec.clusterIPs ?? [])];
    for (const { index, family } of plan.allocate) {
      const ip = await this.#allocateAddress(scope, service, clusterIPs[index] ?? "", family, dryRun);
      if (!dryRun) allocated.push(ip);
      clusterIPs[index] = ip;
    }
    return { ...service, spec: { ...spec, clusterIPs, clusterIP: clusterIPs[0] } };
  }

  /** Throws a `StatusError`. */
  async #allocateAddress(
    scope: Scope,
    service: Service,
    requested: string,
    family: IpFamily,
    dryRun: boolean,
  ): Promise<string> {
    const { addresses } = this.#deps;
    const name = serviceName(scope, service);
    try {
      if (requested === "") return await addresses.allocateNext(scope, name, family, dryRun);
      return await addresses.allocate(scope, name, requested, dryRun);
    } catch (error) {
      if (!(error instanceof AddressUnavailable)) throw error;
      if (requested === "") throw internalError(`failed to allocate a serviceIP: ${error.message}`);
      const detail = `failed to allocate IP ${requested}: ${error.message}`;
      return reject(scope, service, [invalidField("spec.clusterIPs", specOf(service).clusterIPs, detail)]);
    }
  }
}

/** The node ports that the service had and has no more. */
function portsWithout(previous: Service | undefined, written: Service): readonly number[] {
  if (previous === undefined) return [];
  const kept = nodePortsOfService(written);
  return nodePortsOfService(previous).filter((port) => !kept.includes(port));
}

/** The scope without the client's signal: a disconnected client must not leave allocations behind. */
function withoutCancellation(scope: Scope): Scope {
  return { ...scope, signal: new AbortController().signal };
}

function allocatePorts(
  scope: Scope,
  service: Service,
  old: ServiceSpec | undefined,
  portAllocation: PortAllocation,
): Service {
  return {
    ...service,
    spec: allocateNodePorts(specOf(service), old, portAllocation, (errors) => reject(scope, service, errors)),
  };
}

/** Indexes in `clusterIPs` to allocate, and addresses to release once the service is stored. */
interface AddressPlan {
  readonly allocate: readonly { readonly index: number; readonly family: IpFamily }[];
  readonly release: readonly string[];
}

const NO_ADDRESSES: AddressPlan = { allocate: [], release: [] };

function planAddresses(spec: ServiceSpec, old: ServiceSpec | undefined): AddressPlan {
  const families = (spec.ipFamilies ?? []).map((family, index) => ({ index, family }));
  const named = spec.type === "ExternalName";
  if (old === undefined || old.type === "ExternalName") {
    return named || spec.clusterIPs?.[0] === "None" ? NO_ADDRESSES : { allocate: families, release: [] };
  }
  if (keepsPreferDualStack(spec, old) || isHeadless(old)) return NO_ADDRESSES;
  const held = old.clusterIPs ?? [];
  if (named) return { allocate: [], release: held };
  const before = (old.ipFamilies ?? []).length;
  if (before === 1 && families.length === 2) return { allocate: families.slice(1), release: [] };
  return { allocate: [], release: before === 2 && families.length === 1 ? held.slice(1) : [] };
}

function serviceName(scope: Scope, service: Service): ServiceName {
  const { name = "", namespace = scope.namespace } = metadataOf(service);
  return { namespace, name };
}

function reject(scope: Scope, service: Service, errors: readonly FieldError[]): never {
  const { name = "" } = metadataOf(service);
  throw invalid({ group: scope.group, resource: "Service", name }, errors, renderFieldError);
}
