import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import t from "tap";
import { HttpError } from "./http-error.ts";
import { makeRequest } from "./request.ts";
import { acceptsGzip, bytesResponse, compressResponses, errorResponse, jsonResponse, textResponse } from "./respond.ts";

t.test("acceptsGzip() accepts the plain name only", async (t) => {
  for (const yes of ["gzip", "deflate, gzip", " gzip ,br"]) t.equal(acceptsGzip(yes), true, yes);
  for (const no of [undefined, "", "identity", "gzip;q=1.0", "GZIP", "*", "gzip;q=0.000, *", "gzipped"])
    t.equal(acceptsGzip(no), false, String(no));
});

t.test("compressResponses() compresses large bodies for clients that accept gzip, and no streams", async (t) => {
  const large = [Buffer.alloc(80_000, "a"), Buffer.alloc(80_000, "b")];
  const request = (accept?: string, method = "GET") =>
    makeRequest({ method, path: "/", headers: accept === undefined ? {} : { "accept-encoding": accept } });
  const serve = compressResponses()(async () =>
    bytesResponse(200, "text/plain", large, { "content-length": "160000" }),
  );
  const packed = await serve(request("gzip"));
  t.equal(packed.headers["content-encoding"], "gzip");
  t.equal(packed.headers["content-length"], undefined);
  t.strictSame(gunzipSync(packed.body as Uint8Array), Buffer.concat(large));
  t.equal((await serve(request())).body, large);
  t.equal((await serve(request("gzip", "HEAD"))).body, large);
  const small = await compressResponses()(async () => textResponse(200, "small"))(request("gzip"));
  t.equal(small.headers["content-encoding"], undefined);
  const stream = (async function* () {})();
  t.equal((await compressResponses(0)(async () => bytesResponse(200, "x/y", stream))(request("gzip"))).body, stream);
  const pieces = async function* () {
    for (const piece of ["a ", "list"]) yield Buffer.from(piece);
  };
  const finite = compressResponses()(async () => ({ ...bytesResponse(200, "x/y", pieces()), finite: true as const }));
  const compressed = await finite(request("gzip"));
  t.equal(compressed.headers["content-encoding"], "gzip");
  t.equal(gunzipSync(await buffer(compressed.body as AsyncIterable<Uint8Array>)).toString(), "a list");
});

t.test("errorResponse() shows the message of an HttpError, and of nothing else", async (t) => {
  const shown = errorResponse(new HttpError(413, "RequestEntityTooLarge", "too large"));
  t.match(JSON.parse(String(shown.body)), { kind: "Status", apiVersion: "v1", code: 413, message: "too large" });
  const hidden = errorResponse(new Error("password is hunter2"));
  t.equal(hidden.status, 500);
  t.notMatch(String(hidden.body), /hunter2/);
  t.equal(jsonResponse(200, { a: 1 }).headers["content-type"], "application/json");
});
