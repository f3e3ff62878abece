/**
 * `--rotate-server-certificates`: the agent serves with a certificate signed by the cluster, for the addresses in the
 * Node object, since signers refuse others. When these change, it requests a new certificate.
 */
import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { Node } from "../../api/core/node/schema.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import { NODE_USER_PREFIX, NODES } from "../../auth/user.ts";
import type { Client } from "../../client/client.ts";
import { Wakeup } from "../../std/async/wakeup.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AgentConfig } from "../agent-config.ts";
import { CertificateFiles } from "./certificate-files.ts";
import { requestCertificate } from "./request-certificate.ts";
import { type RotationObserver, rotateCertificate } from "./rotation.ts";

export interface ServingRotationOptions {
  readonly config: Pick<AgentConfig, "nodeName" | "certDir" | "certificates">;
  readonly client: Client;
  readonly names: ServingNames;
  readonly clock: Clock;
  readonly log: Logger;
  readonly use: (pair: KeyPair) => void;
  readonly metrics?: RotationObserver | undefined;
}

const SIGNER = "kubernetes.io/kubelet-serving";

/** The node's addresses and DNS names, from its object. */
export class ServingNames {
  readonly #changed = new Wakeup();
  #ips: readonly string[] = [];
  #dnsNames: readonly string[] = [];

  /** Called when the Node object is read or has changed. */
  update({ status }: Node): void {
    const names = [...new Set((status?.addresses ?? []).map(({ address }) => address))].sort();
    const [ips, dnsNames] = [names.filter((name) => isIP(name) !== 0), names.filter((name) => isIP(name) === 0)];
    if (`${ips}` === `${this.#ips}` && `${dnsNames}` === `${this.#dnsNames}`) return;
    [this.#ips, this.#dnsNames] = [ips, dnsNames];
    this.#changed.notify();
  }

  get ips(): readonly string[] {
    return this.#ips;
  }

  get dnsNames(): readonly string[] {
    return this.#dnsNames;
  }

  /** Whether the node has an address, or just a name if that is enough. */
  isSet(mayLackAddresses: boolean): boolean {
    return this.#ips.length > 0 || (mayLackAddresses && this.#dnsNames.length > 0);
  }

  /** Resolves at the next change, or when the signal aborts. */
  waitForChange(signal: AbortSignal): Promise<void> {
    return this.#changed.wait(signal);
  }
}

/** Until the first certificate is signed, the agent serves with a self-signed one. Disposing stops the rotation. */
export function rotateServingCertificate(options: ServingRotationOptions, signal: AbortSignal): AsyncDisposable {
  const stop = new AbortController();
  const running = runRotation(options, AbortSignal.any([signal, stop.signal]));
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the agent stops"));
      await running;
    },
  };
}

async function runRotation(
  { config, client, names, clock, log, use, metrics }: ServingRotationOptions,
  signal: AbortSignal,
): Promise<void> {
  const { nodeName, certDir } = config;
  const files = new CertificateFiles(certDir, "server");
  const kept = await files.read();
  if (kept !== undefined) use(kept);
  const mayLackAddresses = config.certificates.servingWithoutAddresses === true;
  while (!names.isSet(mayLackAddresses) && !signal.aborted) await names.waitForChange(signal);
  const isCurrent = (certificate: X509Certificate): boolean =>
    names.dnsNames.every((name) => certificate.checkHost(name, { subject: "never" }) !== undefined) &&
    names.ips.every((ip) => certificate.checkIP(ip) !== undefined);
  const request = (until: AbortSignal): Promise<KeyPair> => {
    const subject = {
      commonName: `${NODE_USER_PREFIX}${nodeName}`,
      organizations: [NODES],
      dnsNames: names.dnsNames,
      ips: names.ips,
    };
    return requestCertificate({ client, signerName: SIGNER, subject, usage: "server auth", signal: until });
  };
  await rotateCertificate(
    {
      certificate: kept,
      request,
      async use(pair) {
        await files.write(pair, clock.now());
        use(pair);
      },
      isCurrent,
      waitForChange: (until) => names.waitForChange(until),
      description: "serving certificate",
      metrics,
      clock,
      random: systemRandom,
      log,
    },
    signal,
  );
}
