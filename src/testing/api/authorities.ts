import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";

/** An authority and a certificate that it issued, in PEM. */
export interface TestAuthority {
  readonly authority: string;
  readonly issued: string;
  readonly key: string;
}

export async function createTestAuthority(): Promise<TestAuthority> {
  const now = Date.now();
  const ca = await createCa("root", 10, now);
  const { cert, key } = await issueCertificate(ca, { commonName: "x", usages: ["client"], days: 1 }, now);
  return { authority: ca.cert, issued: cert, key };
}
