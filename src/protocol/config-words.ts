// protocol/config-words.ts: what single values of the configuration look like, apart from the schema: flags are checked
// against the same words on a path where zod, which takes longer to load than a sandbox to start, must not be imported.

export const WORDS = {
  size: 'a size such as 512m or 4g',
  share: 'a size such as 512m or 4g, or a share of the memory such as 50%',
  duration: 'a time such as 90s, 5m, 2h or 1d, or none',
  workspace: 'auto, overlay or copy',
  place: 'an absolute path, or one that begins with ~/',
  envName: 'the name of a variable: letters, digits and _, not a digit first',
  envPass: 'the name of a variable, or a prefix that ends in _*',
  pattern: 'a pattern such as *.pem, without "!" in front',
} as const;

export const SIZE = /^\d+(\.\d+)?([kmgtKMGT](i?[bB])?)?$/;
export const SHARE = /^\d+(\.\d+)?(%|[kmgtKMGT](i?[bB])?)?$/;
export const DURATION = /^(none|(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$/;
export const WORKSPACES = ['auto', 'overlay', 'copy'] as const;
export const PLACE = /^(~\/|\/)/;
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
export const ENV_PASS = /^[A-Za-z_]([A-Za-z0-9_]*|[A-Za-z0-9_]*_\*)$|^_\*$/;
// What takes back a pattern would show a hidden file, without any trust: that is what `reveal` is for.
export const PATTERN = /^[^!]/;
/** Relative, and not able to climb out: no name in it is empty, "." or "..". */
export const BELOW = /^(?!\.{0,2}(\/|$))[^/]+(\/(?!\.{0,2}(\/|$))[^/]+)*\/?$/;
