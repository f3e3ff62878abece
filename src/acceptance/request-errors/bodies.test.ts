/** The type that a body names: defaults, unknown types and known types in the wrong place. */
import t from "tap";
import { answerTo, NAMESPACE, startTableServer } from "./table.ts";

const SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"';

t.test("apiVersions are split as Go splits them, and completed by the path", async (t) => {
  await using server = await startTableServer();
  const deployments = "/apis/apps/v1/namespaces/default/deployments";
  const malformed = (apiVersion: string, kind: string): string =>
    `400 BadRequest: the object provided is unrecognized (must be of type ${kind}): unexpected GroupVersion string: ${apiVersion}`;
  const unknown = (apiVersion: string, kind: string): string => {
    const version = apiVersion.split("/").at(-1);
    const registered = `no kind "${kind}" is registered for version "${apiVersion.replace(/^\//, "")}" ${SCHEME}`;
    return `400 BadRequest: ${kind} in version "${version}" cannot be handled as a ${kind}: ${registered}`;
  };
  const answers: readonly (readonly [string, string, string, string])[] = [
    [`${NAMESPACE}/configmaps`, "ConfigMap", "", "201"],
    [`${NAMESPACE}/configmaps`, "ConfigMap", "/", "201"],
    [`${NAMESPACE}/configmaps`, "ConfigMap", "/v1", "201"],
    [`${NAMESPACE}/configmaps`, "ConfigMap", "v1/", unknown("v1/", "ConfigMap")],
    [`${NAMESPACE}/configmaps`, "ConfigMap", "a/b/c", malformed("a/b/c", "ConfigMap")],
    [`${NAMESPACE}/configmaps`, "ConfigMap", "//", malformed("//", "ConfigMap")],
    [deployments, "Deployment", "apps/", "422 Invalid: Deployment.apps"],
    [deployments, "Deployment", "", "422 Invalid: Deployment.apps"],
    [deployments, "Deployment", "/v1", unknown("/v1", "Deployment")],
    [deployments, "Deployment", "other/", unknown("other/", "Deployment")],
    [deployments, "Deployment", "apps/v1/", malformed("apps/v1/", "Deployment")],
  ];
  for (const [path, kind, apiVersion, answer] of answers) {
    const body = { apiVersion, kind, metadata: { name: "b" } };
    const found = await answerTo(server, `POST ${path}?dryRun=All`, { body });
    t.ok(found.startsWith(answer), `${apiVersion}: ${found}`);
  }
});

t.test("kinds of subresources are known in their own group only", async (t) => {
  await using server = await startTableServer();
  const kinds: readonly (readonly [string, string, string, string])[] = [
    ["pods/p/eviction", "Eviction", "policy/v1", "policy"],
    ["serviceaccounts/s/token", "TokenRequest", "authentication.k8s.io/v1", "authentication"],
  ];
  for (const [path, kind, own, group] of kinds) {
    const line = `POST ${NAMESPACE}/${path}`;
    const core = await answerTo(server, line, { body: { apiVersion: "v1", kind } });
    const why = `no kind "${kind}" is registered for version "v1" ${SCHEME}`;
    t.equal(core, `400 BadRequest: ${kind} in version "v1" cannot be handled as a ${kind}: ${why}`);
    const other = await answerTo(server, line, { body: { apiVersion: "v1", kind: "Pod" } });
    const conversion = `converting (v1.Pod) to (${group}.${kind}): unknown conversion`;
    t.equal(other, `400 BadRequest: Pod in version "v1" cannot be handled as a ${kind}: ${conversion}`);
    const misplaced = await answerTo(server, `POST ${NAMESPACE}/configmaps`, { body: { apiVersion: own, kind } });
    const found = `converting (v1.${kind}) to (core.ConfigMap): unknown conversion`;
    t.equal(misplaced, `400 BadRequest: ${kind} in version "v1" cannot be handled as a ConfigMap: ${found}`);
  }
});
