/** The gates of the API server without settings. */
import { FeatureGates, type FeatureLookup } from "../gates.ts";
import { apiserverGates } from "./apiserver.ts";

export const defaultFeatures: FeatureLookup = new FeatureGates(apiserverGates);
