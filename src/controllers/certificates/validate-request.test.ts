import t from "tap";
import type { ParsedRequest } from "../../auth/pki/certificate-signing.ts";
import { CLIENT_SIGNER, NODE_CLIENT_SIGNER, NODE_SERVING_SIGNER, validateForSigner } from "./validate-request.ts";

const node = {
  organizations: ["system:nodes"],
  commonName: "system:node:a",
  dnsNames: [],
  ips: [],
  emails: [],
  uris: [],
} as unknown as ParsedRequest;
const host = { dnsNames: ["a"] };
const client = ["digital signature", "client auth"] as const;
const serving = ["digital signature", "server auth"] as const;

t.test("validateForSigner() explains the first violation of the signer's rules in Kubernetes' words", (t) => {
  const cases = [
    [NODE_CLIENT_SIGNER, {}, client, undefined],
    [NODE_CLIENT_SIGNER, {}, [...client, "key encipherment"], undefined],
    [NODE_CLIENT_SIGNER, { organizations: ["x"] }, client, "subject organization is not system:nodes"],
    [NODE_CLIENT_SIGNER, host, client, "DNS subjectAltNames are not allowed"],
    [NODE_CLIENT_SIGNER, { commonName: "a" }, [], "subject common name does not begin with system:node:"],
    [NODE_CLIENT_SIGNER, {}, serving, "usages did not match [client auth digital signature key encipherment]"],
    [NODE_SERVING_SIGNER, host, serving, undefined],
    [NODE_SERVING_SIGNER, {}, serving, "DNS or IP subjectAltName is required"],
    [
      NODE_SERVING_SIGNER,
      { ...host, commonName: "a" },
      client,
      "usages did not match [digital signature key encipherment server auth]",
    ],
    [
      NODE_SERVING_SIGNER,
      { ...host, commonName: "a" },
      serving,
      "subject common name does not begin with system:node:",
    ],
    [CLIENT_SIGNER, {}, ["key encipherment"], "missing required usage for client certificate: client auth"],
    [CLIENT_SIGNER, {}, serving, "invalid usage for client certificate: server auth"],
  ] as const;
  for (const [signerName, change, usages, problem] of cases) {
    const found = validateForSigner({ signerName, request: "", usages }, { ...node, ...change });
    t.equal(found, problem, `${signerName} ${JSON.stringify(change)} ${usages}`);
  }
  t.end();
});
