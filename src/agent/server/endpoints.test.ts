import t from "tap";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { decodeSegments, Endpoints } from "./endpoints.ts";

const request = (path: string, method = "GET", headers = {}) => {
  const [bare = "", query = ""] = path.split("?");
  return makeRequest({ method, path: bare, query, headers });
};

t.test("paths that are not clean, and roots of services, redirect as in Go", async (t) => {
  const endpoints = new Endpoints();
  endpoints.redirect("/stats");
  for (const [path, location] of [
    ["/stats", "/stats/"],
    ["/stats?a=1", "/stats/?a=1"],
    ["//stats", "/stats/"],
    ["/stats/", undefined],
    ["/absent", undefined],
    ["//absent", "/absent"],
    ["/a/../pods?x=%20", "/pods?x=%20"],
    ["/./pods/", "/pods/"],
    ["/a//b", "/a/b"],
    ["/../..", "/"],
    ["/a/..", "/"],
    ["/a/b/.", "/a/b"],
    ["/a/%2e%2e/b", undefined],
    ["/.../a..b/.c", undefined],
    ["/", undefined],
  ] as const) {
    const response = endpoints.findRedirect(request(path));
    t.equal(response?.headers.location, location, path);
    if (location !== undefined) t.equal(response?.status, 301, path);
  }
});

t.test("only GET and HEAD get a page with a redirect", async (t) => {
  const redirect = (method: string) => new Endpoints().findRedirect(request("//a?b&c", method));
  const get = redirect("GET");
  t.equal(String(get?.body), '<a href="/a?b&amp;c">Moved Permanently</a>.\n\n');
  t.equal(get?.headers["content-type"], "text/html; charset=utf-8");
  t.match(redirect("HEAD"), { headers: { "content-type": "text/html; charset=utf-8" }, body: Buffer.alloc(0) });
  t.same(redirect("POST")?.headers, { location: "/a?b&c" });
  t.same(redirect("POST")?.body, Buffer.alloc(0));
});

t.test("a route serves clients that accept its media type, after the checks of path and method", async (t) => {
  const endpoints = new Endpoints();
  endpoints.service("/typed", "/{name}", "application/json", async () => textResponse(200, ""));
  endpoints.services("/bare", { patterns: ["/{name}"], methods: ["POST"] }, async () => textResponse(200, ""));
  const respond = async (line: string, accept: string): Promise<string> => {
    const [method = "", path = ""] = line.split(" ");
    const response = await endpoints.find(path)?.(request(path, method, { accept }), {});
    return response?.status === 406 ? String(response.body).split(": ").at(-1)! : String(response?.status);
  };
  for (const [line, accept, expected] of [
    ["GET /typed/a", "", "200"],
    ["GET /typed/a", "*/*", "200"],
    ["GET /typed/a", "text/plain;q=1, application/json;q=0", "200"],
    ["GET /typed/a", "text/plain", "application/json"],
    ["GET /typed/a", "application/*", "application/json"],
    ["GET /typed/a", "APPLICATION/JSON", "application/json"],
    ["POST /typed/a", "text/plain", "405"],
    ["GET /typed/a/b", "text/plain", "404"],
    ["POST /bare/a", "", "200"],
    ["POST /bare/a", "text/html, */*;q=0", "200"],
    ["POST /bare/a", "application/json", ""],
    ["POST /bare/a", "*", ""],
    ["GET /bare/a", "application/json", "405"],
  ] as const) {
    t.equal(await respond(line, accept), expected, `${line} ${accept}`);
  }
});

t.test(
  "encoded letters are letters; an encoded slash separates segments below the root of a service only",
  async (t) => {
    const endpoints = new Endpoints();
    endpoints.path("/healthz", async () => textResponse(200, "exact"));
    endpoints.services("/logs", { patterns: ["/{a}/{b}"], methods: ["GET"] }, async (_request, { a, b }) =>
      textResponse(200, `${a} ${b}`),
    );
    endpoints.redirect("/logs");
    for (const [path, expected] of [
      ["/heal%74hz", "exact"],
      ["/healthz%2fping", undefined],
      ["/%6cogs/a/b", "a b"],
      ["/logs/a%2fb", "a b"],
      ["/logs/a%2Fb/c", "404: Page Not Found"],
      ["/logs/a%252fb/c%20d", "a%2fb c d"],
      ["/logs%2fa/b", undefined],
      ["/logs/%2e%2e/b", ".. b"],
    ] as const) {
      const response = await endpoints.find(path)?.(request(path), {});
      t.equal(response === undefined ? undefined : String(response.body), expected, path);
    }
    t.equal(endpoints.findRedirect(request("/%6cogs"))?.headers.location, "/logs/");
    t.equal(decodeSegments("/a%2fb/%63/%zz/%25"), "/a%2Fb/c/%zz/%25");
  },
);
