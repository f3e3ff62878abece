import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import type { Kind } from "../../../api/kind.ts";
import { authorizerOf, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { clusterTrustBundleAttest } from "./cluster-trust-bundle-attest.ts";

const calls: string[] = [];

const authorizer = authorizerOf((verb, resource, name) => {
  calls.push(`${verb} ${resource} ${name}`);
  return verb === "sign" ? name === "a.b/c" : name === "a.b/*";
});

t.test("clusterTrustBundleAttest() rejects bundles of a signer for which the user may not attest", async (t) => {
  const plugin = clusterTrustBundleAttest({ authorizer });
  const kind: Kind = {
    ...(configMapKind as unknown as Kind),
    plural: "clustertrustbundles",
    group: "certificates.svc.io",
    namespaced: false,
  };
  const bundle = (signerName?: string, metadata: object = {}) =>
    ({ metadata: { name: "b", ...metadata }, spec: signerName === undefined ? {} : { signerName } }) as never;
  t.equal(await rejectionOf(runPlugin(plugin, kind, bundle("a.b/c"))), "");
  t.equal(await rejectionOf(runPlugin(plugin, kind, bundle())), "");
  t.match(
    await rejectionOf(runPlugin(plugin, kind, bundle("b.c/d"))),
    /user not permitted to attest for signerName "b\.c\/d"$/,
  );
  const oldObject = bundle("b.c/d");
  t.equal(await rejectionOf(runPlugin(plugin, kind, bundle("b.c/d", { finalizers: ["a/b"] }), { oldObject })), "");
  t.match(
    await rejectionOf(runPlugin(plugin, kind, bundle("b.c/d", { labels: { a: "b" } }), { oldObject })),
    /not permitted/,
  );
  t.match(
    await rejectionOf(runPlugin(plugin, kind, bundle("a.b/c"), { oldObject })),
    /changing signer name is forbidden$/,
  );
});
