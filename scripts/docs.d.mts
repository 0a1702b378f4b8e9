export function renderDocs(modules: {
  keys: object;
  defaults: object;
  errors: object;
  presets: object;
  routes: object;
  openapi: object;
}): Record<string, string>;
