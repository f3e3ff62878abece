/**
 * Runs inside a container: `sample-server CERTIFICATES PORT` serves the sample kinds. It trusts the front proxy of the
 * cluster, whose authority it reads with the pod's token, as Kubernetes' extension servers do.
 */
import { readFileSync } from "node:fs";
import { get } from "node:https";
import { startExtensionServer } from "../../../testing/aggregation/extension-server.ts";
import { fischerKind, flunderKind } from "../../../testing/aggregation/sample-kinds.ts";

const [certificates = "", port = ""] = process.argv.slice(2);
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

function read(path: string): Promise<string> {
  const headers = { authorization: `Bearer ${readFileSync(`${ACCOUNT}/token`, "utf8")}` };
  const ca = readFileSync(`${ACCOUNT}/ca.crt`);
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: apiPort } = process.env;
  return new Promise((resolve, reject) => {
    get({ host, port: apiPort, path, headers, ca }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${path}: ${response.statusCode} ${text}`));
      });
    }).on("error", reject);
  });
}

const { data } = JSON.parse(await read(TRUST)) as { readonly data: Readonly<Record<string, string>> };
const server = await startExtensionServer({
  kinds: [flunderKind, fischerKind],
  certificate: {
    cert: readFileSync(`${certificates}/tls.crt`, "utf8"),
    key: readFileSync(`${certificates}/tls.key`, "utf8"),
  },
  proxyCa: data["requestheader-client-ca-file"] ?? "",
  host: "0.0.0.0",
  port: Number(port),
});
console.log(`serving at ${server.port}`);
process.once("SIGTERM", () => process.exit(0));
