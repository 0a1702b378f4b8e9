// web/vite.config.ts: builds the page into static files that work under a strict content security policy.
import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { diffLibrary } from './diff-library.ts';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [diffLibrary(), react(), tailwindcss()],
  worker: { format: 'es', plugins: () => [diffLibrary()] },
  server: { proxy: { '/api': { target: 'http://127.0.0.1:7780', ws: true }, '/enter': 'http://127.0.0.1:7780' } },
  build: {
    outDir: fileURLToPath(new URL('../dist/web', import.meta.url)),
    emptyOutDir: true,
    target: 'es2023',
    // Fonts and images stay separate files: the policy allows our own origin but no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'LICENSES.md' },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
  },
});
