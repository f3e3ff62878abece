/** `--rotate-server-certificates`: what the agent shows is the cluster's certificate, under the node's addresses. */
import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { KeyPair } from "../../auth/key-pair.ts";
import { NODE_USER_PREFIX, NODES } from "../../auth/user.ts";
import type { Client } from "../../client/client.ts";
import type { Clock } from "../../std/clock.ts";
import type { Logger } from "../../std/log.ts";
import { systemRandom } from "../../std/random.ts";
import type { AgentConfig } from "../agent-config.ts";
import { askCertificate } from "./ask-certificate.ts";
import { CertificateFiles } from "./certificate-files.ts";
import { rotate } from "./rotation.ts";

export interface ServingOptions {
  readonly config: Pick<AgentConfig, "nodeName" | "certDir">;
  readonly client: Client;
  /** The node's addresses, as its status tells them. */
  readonly ips: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly use: (pair: KeyPair) => void;
}

const SIGNER = "kubernetes.io/kubelet-serving";

/** Until the first one is there, the agent's own serves. Disposing stops it. */
export function keepServingCertificate(options: ServingOptions, signal: AbortSignal): AsyncDisposable {
  const stop = new AbortController();
  const running = keep(options, AbortSignal.any([signal, stop.signal]));
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the agent stops"));
      await running;
    },
  };
}

async function keep({ config, client, ips, clock, log, use }: ServingOptions, signal: AbortSignal): Promise<void> {
  const { nodeName, certDir } = config;
  const files = new CertificateFiles(certDir, "server");
  const kept = await files.read();
  if (kept !== undefined) use(kept);
  const subject = {
    commonName: `${NODE_USER_PREFIX}${nodeName}`,
    organizations: [NODES],
    dnsNames: isIP(nodeName) === 0 ? [nodeName] : [],
    ips: [...new Set(isIP(nodeName) === 0 ? ips : [...ips, nodeName])],
  };
  const fits = (certificate: X509Certificate): boolean =>
    subject.dnsNames.every((name) => certificate.checkHost(name, { subject: "never" }) !== undefined) &&
    subject.ips.every((ip) => certificate.checkIP(ip) !== undefined);
  await rotate(
    {
      certificate: kept,
      ask: (until) => askCertificate({ client, signerName: SIGNER, subject, usage: "server auth", signal: until }),
      async use(pair) {
        await files.write(pair, clock.now());
        use(pair);
      },
      fits,
      what: "serving certificate",
      clock,
      random: systemRandom,
      log,
    },
    signal,
  );
}
