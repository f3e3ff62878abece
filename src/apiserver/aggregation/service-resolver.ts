/** Resolves the service of an extension server to an address, with Kubernetes' rules and messages. */
import { isIPv6 } from "node:net";
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service, ServicePort } from "../../api/core/service/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Registries } from "../../registry/registries.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { follow } from "../../storage/watch/follow.ts";
import type { ServiceReference } from "./registered-api.ts";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export interface ServiceResolverOptions {
  readonly registries: Registries;
  /** `--enable-aggregator-routing`: to one of the endpoints instead of the cluster IP. */
  readonly routesToEndpoints: boolean;
  readonly signal: AbortSignal;
  /** Called when a service that was read, or its endpoints, have changed. */
  readonly onChange: (namespace: string, name: string) => void;
}

/**
 * Reads services and endpoints from the store and keeps those that extension servers use, until they change: at most
 * two objects for each API service.
 */
export class ServiceResolver {
  readonly #options: ServiceResolverOptions;
  /** By store key. */
  readonly #objects = new Map<string, Promise<ApiObject | undefined>>();
  readonly #names = new Map<string, { readonly namespace: string; readonly name: string }>();

  constructor(options: ServiceResolverOptions) {
    this.#options = options;
    for (const kind of [serviceKind, endpointsKind] as readonly Kind[]) void this.#follow(kind);
  }

  async service({ namespace, name }: ServiceReference): Promise<Service | undefined> {
    return await this.#read(serviceKind, namespace, name);
  }

  async endpoints({ namespace, name }: ServiceReference): Promise<Endpoints | undefined> {
    return await this.#read(endpointsKind, namespace, name);
  }

  /** Drops what was read of the service. */
  forget({ namespace, name }: ServiceReference): void {
    for (const kind of [serviceKind, endpointsKind] as readonly Kind[]) {
      const key = this.#options.registries.of(kind).objects.key(namespace, name);
      this.#objects.delete(key);
      this.#names.delete(key);
    }
  }

  /** Throws an error for the log when the service has no address. */
  async resolve(reference: ServiceReference): Promise<HostPort> {
    const service = await this.service(reference);
    if (service === undefined) throw new Error(`service ${goQuote(reference.name)} not found`);
    const { type = "ClusterIP", externalName = "", clusterIP = "" } = service.spec ?? {};
    if (!this.#options.routesToEndpoints && type === "ExternalName") {
      return { host: externalName, port: reference.port };
    }
    if (!["ClusterIP", "LoadBalancer", "NodePort"].includes(type)) {
      throw new Error(`unsupported service type ${goQuote(type)}`);
    }
    if (!this.#options.routesToEndpoints && type === "ClusterIP" && clusterIP === "None") {
      throw new Error('cannot route to service with ClusterIP "None"');
    }
    const port = servicePort(service, reference.port);
    if (port === undefined) {
      throw new Error(`no service port ${reference.port} found for service ${goQuote(reference.name)}`);
    }
    if (!this.#options.routesToEndpoints) {
      if (clusterIP === "") throw new Error(`service ${goQuote(reference.name)} has no cluster IP`);
      return { host: clusterIP, port: port.port };
    }
    const candidates = addressesOf(await this.endpoints(reference), port.name ?? "");
    const chosen = candidates[Math.floor(this.#options.registries.deps.random.fraction() * candidates.length)];
    if (chosen === undefined) throw new Error(`no endpoints available for service ${goQuote(reference.name)}`);
    return chosen;
  }

  async #read<T extends ApiObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined> {
    const { objects } = this.#options.registries.of(kind);
    const key = objects.key(namespace, name);
    let reading = this.#objects.get(key) as Promise<T | undefined> | undefined;
    if (reading === undefined) {
      reading = objects.get(key);
      this.#objects.set(key, reading);
      this.#names.set(key, { namespace, name });
      reading.catch(() => this.#objects.delete(key));
    }
    return await reading;
  }

  /** Never rejects. */
  async #follow(kind: Kind): Promise<void> {
    const { registries, signal } = this.#options;
    const { clock, log } = registries.deps;
    const invalidate = (key: string): void => {
      const named = this.#names.get(key);
      if (named === undefined) return;
      this.#objects.delete(key);
      this.#options.onChange(named.namespace, named.name);
    };
    await follow({
      feed: registries.feedOf(kind),
      prefix: registries.of(kind).objects.prefix(),
      clock,
      log,
      signal,
      follower: {
        startList: () => ({ add: () => {}, complete: () => this.#objects.clear() }),
        onChange: (event) => invalidate(event.type === "put" ? event.item.key : event.key),
      },
    });
  }
}

export function servicePort({ spec }: Service, number: number): ServicePort | undefined {
  return spec?.ports?.find(({ port }) => port === number);
}

/** The ready addresses of a service's port, by its name. */
export function addressesOf(endpoints: Endpoints | undefined, portName: string): readonly HostPort[] {
  return (endpoints?.subsets ?? []).flatMap(({ addresses = [], ports = [] }) => {
    const found = ports.find(({ name = "" }) => name === portName);
    return found === undefined ? [] : addresses.map(({ ip }) => ({ host: ip, port: found.port }));
  });
}

/** As in a URL: `[fd00::1]:443`. */
export function formatHostPort({ host, port }: HostPort): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
