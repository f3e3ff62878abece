/** The certificate the server shows: the operator's, or a self-signed one that is made once and kept. */
import { hostname } from "node:os";
import { join } from "node:path";
import { issueCertificate, type KeyPair, makeCa, readKeyPair, stillGood, writeKeyPair } from "../auth/pki.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { ServingConfig } from "./config.ts";

const DAYS = 365;
/** A certificate is replaced at a start when it has less than this left. */
const REMAINING_DAYS_MIN = 30;
/** The service's names inside a cluster. */
const SERVICE_NAMES = [
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];

export async function servingCertificate(
  config: ServingConfig,
  bindAddress: string,
  clock: Clock,
  log: Logger,
): Promise<KeyPair> {
  if (config.certificate !== undefined) {
    const pair = await readKeyPair(config.certificate);
    if (pair !== undefined) return pair;
    const { certFile, keyFile } = config.certificate;
    throw new Error(`Cannot serve: ${certFile} or ${keyFile} does not exist`);
  }
  const files = { certFile: join(config.certDir, "apiserver.crt"), keyFile: join(config.certDir, "apiserver.key") };
  const names = [
    ...new Set([
      "localhost",
      "127.0.0.1",
      "::1",
      hostname().toLowerCase(),
      ...SERVICE_NAMES,
      ...addressOf(bindAddress),
    ]),
  ];
  const kept = await readKeyPair(files);
  // The file holds the leaf and behind it the authority that signed it and nothing else.
  const authority = kept?.cert.split(/(?<=-----END CERTIFICATE-----\n)/)[1];
  if (kept !== undefined && authority !== undefined) {
    if (stillGood(kept, authority, names, clock.now(), REMAINING_DAYS_MIN)) return kept;
  }
  const ca = await makeCa(`${hostname()}-ca@${Math.floor(clock.now() / 1000)}`, DAYS, clock.now());
  const request = { commonName: hostname(), alternativeNames: names, usages: ["server" as const], days: DAYS };
  const leaf = await issueCertificate(ca, request, clock.now());
  const pair = { cert: leaf.cert + ca.cert, key: leaf.key };
  await writeKeyPair(files, pair);
  log.info("Generated self-signed cert", { file: files.certFile });
  return pair;
}

function addressOf(bindAddress: string): readonly string[] {
  return bindAddress === "" || bindAddress === "0.0.0.0" || bindAddress === "::" ? [] : [bindAddress];
}
