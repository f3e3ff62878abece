/** The cluster's DNS server of this node. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { DnsServer } from "../../dns/dns-server.ts";
import { DNS_PORT } from "../../dns/forward/server-address.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { parseResolvConf } from "../pods/sandbox/dns.ts";
import type { Foundation } from "./foundation.ts";
import type { Reporting } from "./reporting.ts";

/** Undefined without `--serve-dns`. Throws a message for the operator when there is no API server. */
export async function openDns(
  { config, clock, log, informers, metrics, stack }: Foundation,
  { recordNodeEvent }: Reporting,
  port = DNS_PORT,
): Promise<DnsServer | undefined> {
  if (config.dns === undefined) return undefined;
  if (informers === undefined) throw new Error("Cannot use --serve-dns without --svcconfig or --join");
  const { clusterDns, clusterDomain, resolvConf } = config.pods;
  const dnsLog = log.child("dns");
  const { startDnsServer } = await import("../../dns/dns-server.ts");
  const server = await startDnsServer({
    addresses: clusterDns,
    port,
    domain: clusterDomain,
    rules: config.dns.forward,
    readResolvers: async () => parseResolvConf(await readFile(resolvConf, "utf8").catch(() => "")).servers,
    informers,
    recordsFile: join(config.rootDir, "dns-records"),
    metrics,
    clock,
    random: systemRandom,
    log: dnsLog,
    onProblem(text) {
      dnsLog.warn(text);
      recordNodeEvent("Warning", "DNSServerFailed", text);
    },
  });
  stack.defer(() => server.close({ removeAddresses: false }));
  return server;
}
