import t from "tap";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { createCa } from "../../auth/pki/certificate-authority.ts";
import { formatTime } from "../../schema/value/time.ts";
import { isExpiredRequest } from "./csr-cleaner-controller.ts";

const NOW = Date.UTC(2026, 5, 1);
const HOUR = 3_600_000;

function request(ageMs: number, type?: string, decidedMs = 0, certificate?: string): CertificateSigningRequest {
  const conditions = type === undefined ? [] : [{ type, status: "True", lastUpdateTime: formatTime(NOW - decidedMs) }];
  return {
    metadata: { creationTimestamp: formatTime(NOW - ageMs) },
    spec: { request: "", signerName: "a.io/b" },
    status: { conditions, ...(certificate === undefined ? {} : { certificate }) },
  };
}

t.test("isExpiredRequest() depends on the state of the request and its age", async (t) => {
  const certificateUntil = async (days: number): Promise<string> =>
    Buffer.from((await createCa("x", days, NOW - 10 * 24 * HOUR)).cert).toString("base64");
  const cases: readonly (readonly [string, CertificateSigningRequest, boolean])[] = [
    ["pending for 23 hours", request(23 * HOUR), false],
    ["pending for 25 hours", request(25 * HOUR), true],
    ["approved half an hour ago", request(99 * HOUR, "Approved", HOUR / 2), false],
    ["approved two hours ago", request(3 * HOUR, "Approved", 2 * HOUR, await certificateUntil(11)), true],
    ["approved two hours ago, not signed", request(99 * HOUR, "Approved", 2 * HOUR), false],
    ["with another condition", request(99 * HOUR, "Checked", 2 * HOUR), false],
    ["denied two hours ago", request(3 * HOUR, "Denied", 2 * HOUR), true],
    ["failed two hours ago", request(3 * HOUR, "Failed", 2 * HOUR), true],
    ["expired", request(HOUR / 2, "Approved", 0, await certificateUntil(9)), true],
    ["valid", request(HOUR / 2, "Approved", 0, await certificateUntil(11)), false],
    ["no certificate", request(HOUR / 2, "Approved", 0, "bm9uZQ=="), false],
  ];
  for (const [what, each, over] of cases) t.equal(isExpiredRequest(each, NOW), over, what);
});
