/** Text of the deprecation warning of flags with a field in the configuration file. */
export const inFile = "set its field in the file given with --config instead.";
