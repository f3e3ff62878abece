/**
 * Runs inside a container: `verify-token TOKEN_FILE CA_FILE SUBJECT_TOKEN_FILE` reads the configuration and the keys
 * of the issuer with the first token, and checks the signature, issuer and subject of the second.
 */
import { createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { get } from "node:https";

const [tokenFile = "", caFile = "", subjectFile = ""] = process.argv.slice(2);
const headers = { authorization: `Bearer ${readFileSync(tokenFile, "utf8")}` };
const ca = readFileSync(caFile, "utf8");
const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;

/** Reads a document of the API server. The host of its address may be one that only other clients resolve. */
function read(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(`https://${host}:${port}${path}`, { headers, ca }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${path}: ${response.statusCode} ${text}`));
      });
    }).on("error", reject);
  });
}

const decode = (part: string): Readonly<Record<string, string>> =>
  JSON.parse(Buffer.from(part, "base64url").toString());

const [head = "", body = "", signature = ""] = readFileSync(subjectFile, "utf8").split(".");
const [{ kid, alg }, { iss, sub, aud }] = [decode(head), decode(body)];
const configuration = JSON.parse(await read("/.well-known/openid-configuration"));
if (configuration.issuer !== iss) throw new Error(`The issuer is ${configuration.issuer}, that of the token ${iss}`);
if (!configuration.id_token_signing_alg_values_supported.includes(alg)) throw new Error(`${alg} is not listed`);
const { keys } = JSON.parse(await read(new URL(configuration.jwks_uri).pathname));
const key = keys.find((each: { kid: string }) => each.kid === kid);
if (key === undefined) throw new Error(`The issuer publishes no key ${kid}`);
const publicKey = createPublicKey({ key, format: "jwk" });
const options = alg?.startsWith("ES") ? { key: publicKey, dsaEncoding: "ieee-p1363" as const } : publicKey;
if (!verify("sha256", Buffer.from(`${head}.${body}`), options, Buffer.from(signature, "base64url"))) {
  throw new Error("The signature is wrong");
}
console.log(`verified ${sub} for ${aud}`);
