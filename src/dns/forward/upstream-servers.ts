/** Which servers a name is forwarded to. */
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ForwardRule } from "./forward-rule.ts";
import { DNS_PORT, type ServerAddress } from "./server-address.ts";

export interface UpstreamServersOptions {
  readonly rules: readonly ForwardRule[];
  /** The addresses in the node's resolver file; used for names that no rule matches. */
  readonly readResolvers: () => Promise<readonly string[]>;
  /** This server's own addresses, which the node's file may contain. */
  readonly ownAddresses: readonly string[];
  readonly clock: Clock;
}

/** How long the node's file is not read again, in milliseconds. */
const READ_MS = 5000;

export class UpstreamServers {
  readonly #options: UpstreamServersOptions;
  readonly #byDomain = new Map<string, readonly ServerAddress[]>();
  #resolvers: Promise<readonly ServerAddress[]> | readonly ServerAddress[] | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(options: UpstreamServersOptions) {
    this.#options = options;
    for (const { domain, server } of options.rules) {
      this.#byDomain.set(domain, [...(this.#byDomain.get(domain) ?? []), server]);
    }
  }

  /** Those of the longest domain that contains the name. */
  of(name: string): MaybePromise<readonly ServerAddress[]> {
    for (let domain = name; ; ) {
      const servers = this.#byDomain.get(domain);
      if (servers !== undefined) return servers;
      if (domain === "") return this.#readResolvers();
      const dot = domain.indexOf(".");
      domain = dot === -1 ? "" : domain.slice(dot + 1);
    }
  }

  #readResolvers(): MaybePromise<readonly ServerAddress[]> {
    const { clock, readResolvers, ownAddresses } = this.#options;
    const now = clock.monotonic();
    if (this.#resolvers !== undefined && now - this.#readAt < READ_MS) return this.#resolvers;
    this.#readAt = now;
    const reading = readResolvers().then((addresses) => {
      const others = addresses.filter((address) => !ownAddresses.includes(address));
      return others.map((address): ServerAddress => ({ address, port: DNS_PORT }));
    });
    this.#resolvers = reading;
    return andThen(reading, (servers) => {
      this.#resolvers = servers;
      return servers;
    });
  }
}
