/** The part of the table that one service needs: elements of maps, and chains for what needs rules of its own. */

import { createHash } from "node:crypto";
import type { Steps } from "../../std/async/steps.ts";
import { elementId, type MapElement } from "../../std/nftables/rule-table.ts";
import type { Affinity, Frontend, ServiceFrontends } from "../frontends.ts";
import { chooseChain, type EndpointKind, endpointMapName, masqueradeChain, type TableOptions } from "./base-rules.ts";

export interface ServiceRules {
  /** By map and key; the value is empty for elements of sets. */
  readonly elements: ReadonlyMap<string, MapElement>;
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Definitions by name. */
  readonly sets: ReadonlyMap<string, string>;
  /** The shared chains that verdicts go to. */
  readonly counts: readonly { readonly kind: EndpointKind; readonly count: number }[];
}

export const noRules: ServiceRules = { elements: new Map(), chains: new Map(), sets: new Map(), counts: [] };

export function frontendKey({ address, protocol, port }: Frontend): string {
  return `${address} . ${protocol} . ${port}`;
}

export function* serviceRules(
  { frontends, clusterIps, localAddresses }: ServiceFrontends,
  options: TableOptions,
): Steps<ServiceRules> {
  const builder = new RulesBuilder(options);
  for (const ip of clusterIps) builder.addElement("cluster-ips", ip);
  for (const ip of localAddresses) builder.addElement("hairpins", `${ip} . ${ip}`);
  for (const frontend of frontends) {
    builder.addFrontend(frontend);
    yield;
  }
  return builder;
}

class RulesBuilder implements ServiceRules {
  readonly elements = new Map<string, MapElement>();
  readonly chains = new Map<string, readonly string[]>();
  readonly sets = new Map<string, string>();
  readonly counts: { kind: EndpointKind; count: number }[] = [];
  readonly #options: TableOptions;
  /** Names by ranges. */
  readonly #sourceChains = new Map<readonly string[], string>();

  constructor(options: TableOptions) {
    this.#options = options;
  }

  addElement(map: string, key: string, value = ""): void {
    const element = { map, key, value };
    this.elements.set(elementId(element), element);
  }

  addFrontend(frontend: Frontend): void {
    const key = frontendKey(frontend);
    const { action, sourceRanges } = frontend;
    if (sourceRanges !== undefined) this.addElement("restricted", key, `goto ${this.#sourceChain(sourceRanges)}`);
    switch (action.type) {
      case "reject":
        this.addElement("refused", key, "goto refuse");
        return;
      case "drop":
        this.addElement("refused", key, "goto discard");
        return;
      case "forward":
        this.addElement("services", key, `goto ${this.#forward(frontend, action)}`);
        return;
      case "forwardLocally": {
        const { local, cluster, affinity } = action;
        this.addElement("internal", key, `goto ${this.#forward(frontend, { endpoints: cluster, affinity })}`);
        if (local.length === 0) this.addElement("refused", key, "goto discard");
        if (affinity !== undefined && local.length > 0) {
          const chain = this.#affinityChain(frontend, affinity, local, "local");
          this.addElement("services", key, `goto ${chain}`);
        } else this.addElement("services", key, `goto ${this.#choose(key, "local", local)}`);
      }
    }
  }

  #forward(
    frontend: Frontend,
    {
      endpoints,
      masquerade = false,
      affinity,
    }: { endpoints: readonly string[]; masquerade?: boolean; affinity?: Affinity | undefined },
  ): string {
    if (affinity !== undefined)
      return this.#affinityChain(frontend, affinity, endpoints, masquerade ? "masquerade" : "cluster");
    const chain = this.#choose(frontendKey(frontend), "cluster", endpoints);
    return masquerade ? masqueradeChain(endpoints.length) : chain;
  }

  #choose(key: string, kind: EndpointKind, endpoints: readonly string[]): string {
    this.counts.push({ kind, count: endpoints.length });
    for (const [index, endpoint] of endpoints.entries()) this.addElement(endpointMapName(kind, index), key, endpoint);
    return chooseChain(kind, endpoints.length);
  }

  /** Sends clients to the endpoint that they used within the time; a set for each endpoint has its clients. */
  #affinityChain(
    { protocol }: Frontend,
    { id, seconds }: Affinity,
    endpoints: readonly string[],
    kind: EndpointKind | "masquerade",
  ): string {
    const { family } = this.#options;
    const [ip, type] = family === "IPv4" ? ["ip", "ipv4_addr"] : ["ip6", "ipv6_addr"];
    const service = `affinity-${hash(`${id} ${protocol} ${seconds}`)}`;
    const names = endpoints.map((endpoint) => `${service}-${hash(endpoint)}`);
    for (const [index, name] of names.entries()) {
      const [address = "", port = ""] = (endpoints[index] ?? "").split(" . ");
      const target = family === "IPv4" ? `${address}:${port}` : `[${address}]:${port}`;
      this.sets.set(name, `{ type ${type}; flags dynamic, timeout; timeout ${seconds}s; }`);
      this.chains.set(name, [
        `update @${name} { ${ip} saddr } comment "${id}"`,
        `meta l4proto ${protocol} dnat ${ip} to ${target}`,
      ]);
    }
    const known = names.map((name) => `${ip} saddr @${name} goto ${name}`);
    const verdicts = names.map((name, index) => `${index} : goto ${name}`);
    const choose = [...known, `numgen random mod ${names.length} vmap { ${verdicts.join(", ")} }`];
    if (kind === "cluster") {
      this.chains.set(service, choose);
      return service;
    }
    const chain = `${service}-${kind}`;
    this.chains.set(chain, [kind === "local" ? "jump short-circuit" : "jump mark-masquerade", ...choose]);
    return chain;
  }

  /** All ports of a service have the same ranges. */
  #sourceChain(ranges: readonly string[]): string {
    const known = this.#sourceChains.get(ranges);
    if (known !== undefined) return known;
    const ip = this.#options.family === "IPv4" ? "ip" : "ip6";
    const name = `sources-${hash(ranges.join())}`;
    this.chains.set(name, [`${ip} saddr != { ${ranges.join(", ")} } drop`]);
    this.#sourceChains.set(ranges, name);
    return name;
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
