import t from "tap";
import type { StorageVersionStatus } from "./schema.ts";
import { storageVersionName, validateStorageVersionStatus } from "./validation.ts";

const server = {
  apiServerID: "a",
  encodingVersion: "apps/v1",
  decodableVersions: ["apps/v1"],
  servedVersions: ["apps/v1"],
};

function detailsOf(status: StorageVersionStatus): readonly string[] {
  return validateStorageVersionStatus({ spec: {}, status }).map(({ field, detail }) => `${field}: ${detail}`);
}

t.test("storageVersionName() is a group and a resource", async (t) => {
  t.same(storageVersionName("apps.deployments"), []);
  t.same(storageVersionName("pods"), ["name must be in the form of <group>.<resource>"]);
  t.match(storageVersionName("-.-"), [
    /^the group segment a lowercase RFC 1123 subdomain/,
    /^the resource segment a DNS-/,
  ]);
});

t.test("validateStorageVersionStatus() checks the versions of each server and the common one", async (t) => {
  t.same(detailsOf({}), []);
  t.same(detailsOf({ storageVersions: [server], commonEncodingVersion: "apps/v1" }), []);
  t.same(detailsOf({ storageVersions: [server, server], commonEncodingVersion: "apps/v1" }), [
    "status.storageVersions[1].apiServerID: ",
  ]);
  t.same(detailsOf({ storageVersions: [server] }), [
    "status.commonEncodingVersion: the common encoding version is apps/v1",
  ]);
  t.match(detailsOf({ commonEncodingVersion: "v1" }), [/should be nil if servers do not agree/]);
  t.match(detailsOf({ storageVersions: [server], commonEncodingVersion: "v2" }), [
    /actual common encoding version is apps/,
  ]);
  const odd = { apiServerID: "a", encodingVersion: "/", decodableVersions: ["a/b/c"], servedVersions: ["v9"] };
  t.match(detailsOf({ storageVersions: [odd], commonEncodingVersion: "/" }), [
    /encodingVersion: group part: must be non-empty,version part: must be non-empty$/,
    /decodableVersions\[0\]: an apiVersion is a DNS-1035 label/,
    /decodableVersions: decodableVersions must include encodingVersion \/$/,
    /individual served version : v9 must be included in decodableVersions : \[a\/b\/c\]$/,
  ]);
});

t.test("validateStorageVersionStatus() checks conditions", async (t) => {
  const condition = { type: "AllEncodingVersionsEqual", status: "True", reason: "Same", message: "All agree." };
  t.same(detailsOf({ conditions: [condition] }), []);
  t.same(detailsOf({ conditions: [condition, { ...condition, reason: "", message: "" }] }), [
    "status[1].type: the type of the condition is not unique, it also appears in conditions[0]",
    "status[1].reason: reason cannot be empty",
    "status[1].message: message cannot be empty",
  ]);
});
