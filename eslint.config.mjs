import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      'dist/',
      '.image-build-*/',
      'node_modules/',
      '.data/',
      'coverage/',
      '**/*.config.js',
      // Its types are made when its test runs, which checks it.
      'test/system/generated-client/',
      'test/deploy/package-client/',
      'client/',
    ],
  },
  ...tseslint.configs.recommended,
  {
    files: ['src/**/*.ts', 'migrations/**/*.ts', 'test/**/*.ts', 'tools/**/*.ts'],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/await-thenable': 'error',
      // The methods that `nest g resource` writes don't use their arguments yet.
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none', varsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-imports': 'off',
    },
  },
  {
    // As in a project of the Nest CLI, whose generated classes have `any`.
    files: ['src/**/*.{interceptor,middleware,pipe}.ts'],
    rules: { '@typescript-eslint/no-explicit-any': 'off' },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/platform/database/client.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: [
            {
              name: 'pg',
              importNames: ['Client', 'Pool'],
              allowTypeImports: true,
              message:
                'A lost connection would end the process: use DatabaseClient and newPool of database/client.ts.',
            },
          ],
        },
      ],
    },
  },
);
