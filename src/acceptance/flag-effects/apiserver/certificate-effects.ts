/** Effects of the flags for signing certificates. */
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import type { Test } from "tap";
import { createCa } from "../../../auth/pki/certificate-authority.ts";
import { createCertificateRequest } from "../../../auth/pki/certificate-signing.ts";
import { writeKeyPair } from "../../../auth/pki/key-pair.ts";
import { systemClock } from "../../../std/time/clock.ts";

interface Server extends AsyncDisposable {
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of all kinds
  send(line: string, body?: unknown): Promise<{ readonly status: number; readonly json: any }>;
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
}

type StartServer = (settings: Readonly<Record<string, string>>) => Promise<Server>;

const REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

export function certificateEffects(startServer: StartServer) {
  /** Requests a node certificate; returns it with the CA of the flags. */
  const signed = async (t: Test, settings: Readonly<Record<string, string>> = {}) => {
    const directory = t.testdir();
    const files = { certFile: join(directory, "ca.crt"), keyFile: join(directory, "ca.key") };
    const ca = await createCa("ca", 10, systemClock.now());
    await writeKeyPair(files, ca);
    await using server = await startServer({
      "embedded-controllers": "csrapproving,csrsigning",
      "cluster-signing-cert-file": files.certFile,
      "cluster-signing-key-file": files.keyFile,
      ...settings,
    });
    const { request } = await createCertificateRequest({
      commonName: "system:node:n",
      organizations: ["system:nodes"],
    });
    const spec = {
      request: Buffer.from(request).toString("base64"),
      signerName: "kubernetes.io/kube-apiserver-client-kubelet",
      usages: ["digital signature", "client auth"],
    };
    t.equal((await server.send(`POST ${REQUESTS}`, { metadata: { name: "r" }, spec })).status, 201);
    let found = "";
    await server.until("the certificate", async () => {
      found = (await server.send(`GET ${REQUESTS}/r`)).json.status?.certificate ?? "";
      return found !== "";
    });
    return { certificate: new X509Certificate(Buffer.from(found, "base64")), ca: new X509Certificate(ca.cert) };
  };
  const isSigned = async (t: Test): Promise<void> => {
    const { certificate, ca } = await signed(t);
    t.ok(certificate.verify(ca.publicKey));
  };
  return {
    "cluster-signing-cert-file": isSigned,
    "cluster-signing-key-file": isSigned,
    "cluster-signing-duration": async (t: Test): Promise<void> => {
      const { certificate } = await signed(t, { "cluster-signing-duration": "2h" });
      const hours = (certificate.validToDate.getTime() - systemClock.now()) / 3_600_000;
      t.ok(hours > 1.9 && hours < 2.1, String(hours));
    },
  };
}
