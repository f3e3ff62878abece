/** The serving certificates: those of the flags, or a self-signed one that is generated once. */
import { hostname } from "node:os";
import { join } from "node:path";
import { isReusable, type KeyPairFiles, readKeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import { type ReloadedCertificates, readCertificates } from "../../component/reloaded-certificates.ts";
import type { Logger } from "../../std/log/logger.ts";
import { readHostAddresses } from "../../std/net/host-addresses.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { servingNames } from "./serving-names.ts";

const DAYS = 365;
/** A generated certificate is replaced at a start when it expires within this time. */
const REMAINING_DAYS_MIN = 30;

/** Reads all key pairs; rejects with one sentence when one cannot be used. */
export async function servingCertificates(
  config: Pick<ApiServerConfig, "bindAddress" | "serving" | "services">,
  clock: Clock,
  log: Logger,
): Promise<ReloadedCertificates> {
  const { certificate, sniCertificates } = config.serving;
  const files = certificate ?? (await selfSignedFiles(config, clock, log));
  return await readCertificates(files, sniCertificates, { clock, log });
}

/** The files of a self-signed key pair for this host; generated when there is no valid one in the directory. */
async function selfSignedFiles(
  config: Parameters<typeof servingCertificates>[0],
  clock: Clock,
  log: Logger,
): Promise<KeyPairFiles> {
  const { certDir: directory } = config.serving;
  const files = { certFile: join(directory, "apiserver.crt"), keyFile: join(directory, "apiserver.key") };
  const host = { hostname: hostname(), addresses: await readHostAddresses() };
  const { required, addresses } = servingNames(config, host);
  const existing = await readKeyPair(files);
  // The file contains the leaf certificate followed by its CA.
  const authority = existing?.cert.split(/(?<=-----END CERTIFICATE-----\n)/)[1];
  if (existing !== undefined && authority !== undefined) {
    if (isReusable(existing, authority, required, clock.now(), REMAINING_DAYS_MIN)) return files;
  }
  // Loaded only by a start that generates a certificate.
  const { issueCertificate, createCa } = await import("../../auth/pki/certificate-authority.ts");
  const ca = await createCa(`${hostname()}-ca@${Math.floor(clock.now() / 1000)}`, DAYS, clock.now());
  const alternativeNames = [...new Set([...required, ...addresses])];
  const request = { commonName: hostname(), alternativeNames, usages: ["server" as const], days: DAYS };
  const leaf = await issueCertificate(ca, request, clock.now());
  try {
    await writeKeyPair(files, { cert: leaf.cert + ca.cert, key: leaf.key });
  } catch (cause) {
    throw new Error(`Cannot write a certificate to --cert-dir=${directory}`, { cause });
  }
  log.info("Generated self-signed cert", { file: files.certFile });
  return files;
}
