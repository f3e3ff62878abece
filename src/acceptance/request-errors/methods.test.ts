/** Which methods the paths of the server allow. */
import t from "tap";
import { answerTo, NAMESPACE, startTableServer } from "./table.ts";

const NOT_ALLOWED = "405 MethodNotAllowed: the server does not allow this method on the requested resource";

t.test("resources, versions and documents of discovery allow GET and not HEAD; other paths allow both", async (t) => {
  await using server = await startTableServer();
  const getOnly = ["/api", "/api/", "/api/v1", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1/", "/version"];
  const keys = "/openid/v1/jwks";
  getOnly.push("/.well-known/openid-configuration", keys, `${NAMESPACE}/configmaps`, "/api/v1/nodes");
  const anyMethod = [
    "/",
    "/apis",
    "/apis/",
    "/apis/apps",
    "/openapi/v2",
    "/openapi/v3",
    "/healthz",
    "/livez",
    "/readyz",
  ];
  for (const path of getOnly) {
    const accept = path === keys ? "application/jwk-set+json" : "application/json";
    t.equal(await answerTo(server, `GET ${path}`, { accept }), "200", path);
    t.equal(await answerTo(server, `HEAD ${path}`), NOT_ALLOWED, `HEAD ${path}`);
    t.equal(await answerTo(server, `OPTIONS ${path}`), NOT_ALLOWED, `OPTIONS ${path}`);
  }
  for (const path of anyMethod) {
    for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      t.equal(await answerTo(server, `${method} ${path}`), "200", `${method} ${path}`);
    }
  }
  for (const path of ["/nope", "/apis/nope.example.com", "/api/v2", "/apis/apps/v9"]) {
    for (const method of ["GET", "HEAD"]) t.match(await answerTo(server, `${method} ${path}`), /^404 /, path);
  }
});

t.test("every subresource rejects the methods that it does not have with a 405", async (t) => {
  await using server = await startTableServer();
  const deployment = "/apis/apps/v1/namespaces/default/deployments/d";
  const rejected: Readonly<Record<string, readonly string[]>> = {
    [`${NAMESPACE}/pods/p/status`]: ["POST", "DELETE", "HEAD"],
    [`${NAMESPACE}/pods/p/eviction`]: ["GET", "PUT", "PATCH", "DELETE"],
    [`${NAMESPACE}/pods/p/binding`]: ["GET", "PUT", "PATCH", "DELETE"],
    [`${NAMESPACE}/pods/p/log`]: ["POST", "PUT", "PATCH", "DELETE"],
    [`${NAMESPACE}/bindings`]: ["GET", "PUT", "DELETE"],
    [`${NAMESPACE}/serviceaccounts/s/token`]: ["GET", "PUT", "DELETE"],
    [`${deployment}/scale`]: ["POST", "DELETE"],
    [`${deployment}/status`]: ["POST", "DELETE"],
    "/api/v1/namespaces": ["DELETE", "PUT", "PATCH"],
    "/api/v1/namespaces/default/finalize": ["GET", "POST", "PATCH", "DELETE"],
    "/apis/authentication.k8s.io/v1/tokenreviews": ["GET", "PUT", "PATCH", "DELETE"],
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ["GET", "PUT", "PATCH", "DELETE"],
  };
  for (const [path, methods] of Object.entries(rejected)) {
    for (const method of methods)
      t.equal(await answerTo(server, `${method} ${path}`), NOT_ALLOWED, `${method} ${path}`);
  }
});

t.test("the list of paths is served as the index page too", async (t) => {
  await using server = await startTableServer();
  const { json } = await server.send("GET /");
  t.same((await server.send("GET /index.html")).json, json);
});
