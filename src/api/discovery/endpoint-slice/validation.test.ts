import t from "tap";
import { endpointSliceKind } from "./kind.ts";
import type { EndpointSlice } from "./schema.ts";
import { validateEndpointSlice } from "./validation.ts";

const slice = (addressType: string, ...addresses: readonly string[]): EndpointSlice => ({
  addressType: addressType as "IPv4",
  endpoints: [{ addresses }],
});

t.test("validateEndpointSlice() requires addresses of the slice's type", async (t) => {
  const cases: readonly (readonly [type: string, address: string, problem: RegExp | undefined])[] = [
    ["IPv4", "10.0.0.1", undefined],
    ["IPv4", "fd00::1", /must be an IPv4 address/],
    ["IPv6", "fd00::1", undefined],
    ["IPv6", "::1", /loopback/],
    ["FQDN", "a.example.com.", undefined],
    ["FQDN", "localhost", /at least two segments/],
    ["FQDN", "Bad.example.com", /RFC 1123 subdomain/],
    ["FQDN", `${"a".repeat(64)}.${"b".repeat(64)}`, /must be no more than 63 characters/],
  ];
  for (const [type, address, problem] of cases) {
    const [error] = validateEndpointSlice(slice(type, address));
    if (problem === undefined) t.equal(error, undefined, address);
    else t.match(error?.detail, problem, address);
  }
});

t.test("validateEndpointSlice() skips addresses that the stored slice has already", async (t) => {
  const before = slice("IPv4", "127.0.0.1");
  t.equal(validateEndpointSlice(before).length, 1);
  t.same(validateEndpointSlice(before, before), []);
  t.equal(validateEndpointSlice(slice("IPv4", "127.0.0.1", "127.0.0.2"), before).length, 1);
});

t.test("endpointSliceKind drops deprecatedTopology", async (t) => {
  const endpoint = { addresses: ["10.0.0.1"], deprecatedTopology: { a: "b" } };
  const sent: EndpointSlice = { addressType: "IPv4", endpoints: [endpoint] };
  t.same(endpointSliceKind.strategy.prepareForCreate?.(sent, "")?.endpoints, [{ addresses: ["10.0.0.1"] }]);
});
