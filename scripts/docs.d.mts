export function renderDocs(modules: {
  keys: object;
  defaults: object;
  errors: object;
  presets: object;
}): Record<string, string>;
