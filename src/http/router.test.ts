import t from "tap";
import { Router } from "./router.ts";

function sample(): Router<string> {
  const router = new Router<string>();
  router.add("GET", "/", "root");
  router.add("GET", "/api/v1/namespaces/{namespace}/pods/{name}", "pod");
  router.add("DELETE", "/api/v1/namespaces/{namespace}/pods/{name}", "delete pod");
  router.add("GET", "/api/v1/namespaces/default/pods/{name}", "default pod");
  router.add("GET", "/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path*}", "proxy");
  router.add("GET", "/static/{path*}", "static");
  router.add("GET", "/static/known", "known");
  return router;
}

const pod = (namespace: string, name: string) => ({ value: "pod", params: { namespace, name } });

const matches: readonly (readonly [string, string, unknown])[] = [
  ["GET", "/", { value: "root", params: {} }],
  ["GET", "/api/v1/namespaces/x/pods/web", { value: "pod", params: { namespace: "x", name: "web" } }],
  ["GET", "/api/v1/namespaces/x/pods/web/", { value: "pod", params: { namespace: "x", name: "web" } }],
  ["GET", "/api/v1/namespaces/default/pods/web", { value: "default pod", params: { name: "web" } }],
  // The literal has no DELETE: the parameter matches.
  [
    "DELETE",
    "/api/v1/namespaces/default/pods/web",
    { value: "delete pod", params: { namespace: "default", name: "web" } },
  ],
  ["GET", "/api/v1/namespaces/x/pods/a%20b", { value: "pod", params: { namespace: "x", name: "a b" } }],
  ["GET", "/api/v1/namespaces/x/pods/__proto__", { value: "pod", params: { namespace: "x", name: "__proto__" } }],
  ["GET", "/static/known", { value: "known", params: {} }],
  ["GET", "/stati%63/known", { value: "known", params: {} }],
  ["GET", "/static/a//b/", { value: "static", params: { path: "a//b/" } }],
  ["GET", "/static", { value: "static", params: { path: "" } }],
  ["GET", "/static/", { value: "static", params: { path: "" } }],
  [
    "GET",
    "/api/v1/namespaces/x/pods/w/proxy/a/b",
    { value: "proxy", params: { namespace: "x", name: "w", path: "a/b" } },
  ],
  ["POST", "/static/known", { allowed: ["GET"] }],
  ["PUT", "/api/v1/namespaces/default/pods/web", { allowed: ["DELETE", "GET"] }],
  ["GET", "/api", undefined],
  ["GET", "//", undefined],
  ["GET", "//api/v1/namespaces/x/pods/web", undefined],
  ["GET", "/api/v1/namespaces//pods/web", pod("", "web")],
  ["GET", "/api/v1/namespaces/x/pods/web///", pod("x", "web")],
  ["GET", "/api/v1/namespaces/x/pods//", undefined],
  ["GET", "/api/v1/namespaces/x/pods/..", pod("x", "..")],
  ["GET", "/api/v1/namespaces/x/pods/%2e", pod("x", ".")],
  ["GET", "/api/v1/namespaces%2fx%2Fpods/a", pod("x", "a")],
  ["GET", "/api/v1/namespaces/x/pods/..%2f..%2fsecrets", undefined],
  ["GET", "/api/v1/namespaces/x/pods/a%2Fb", undefined],
  ["GET", "/api/v1/namespaces/x/pods/a%00", pod("x", "a\0")],
  ["GET", "/api/v1/namespaces/x/pods/%ff%20", pod("x", "\uFFFD ")],
  ["GET", "/api/v1/namespaces/x/pods/%zz", pod("x", "%zz")],
  ["GET", "/api/v1/namespaces/x/pods/a%252fb", pod("x", "a%2fb")],
  ["GET", "/static/../etc", undefined],
  ["GET", "/static/%2e%2e/etc", undefined],
  ["GET", "/static/a%2f..%2fetc", undefined],
  ["GET", "nonsense", undefined],
  ["GET", "", undefined],
];

t.test(
  "Router.match() finds the best pattern, splits at encoded slashes, and finds no rest with dot-dot segments",
  async (t) => {
    const router = sample();
    for (const [method, path, expected] of matches) {
      const found = router.match(method, path);
      const plain = found !== undefined && "params" in found ? { ...found, params: { ...found.params } } : found;
      t.strictSame(plain, expected, `${method} ${path}`);
    }
  },
);

t.test("Router.match() takes time linear in the length of the path", async (t) => {
  const router = sample();
  t.equal(router.match("GET", `/api${"/x".repeat(30_000)}`), undefined);
  t.equal(router.match("GET", `${"/".repeat(60_000)}`), undefined);
});

t.test("Router.add() refuses ambiguous patterns", async (t) => {
  const router = sample();
  for (const pattern of ["", "api", "/a/", "/a//", "/{a}/{a}", "/{a*}/b", "/x{a}", "/{a-b}", "/{}", "/"]) {
    t.throws(() => router.add("GET", pattern, ""), { message: /^Cannot add route/ }, pattern);
  }
  t.throws(() => router.add("GET", "/api/v1/namespaces/{other}/pods/{n}", ""), { message: /exists already/ });
});
