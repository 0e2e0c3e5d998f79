// What docs/guides/ownership-offline.md calls of System.Text.Json, which Mono doesn't have: objects of texts, integers,
// Booleans and lists of such objects.
using System;
using System.Collections;
using System.Text.RegularExpressions;

namespace System.Text.Json
{
    public class JsonSerializerOptions
    {
        public bool IncludeFields;
    }

    public static class JsonSerializer
    {
        public static T Deserialize<T>(string json, JsonSerializerOptions options)
        {
            if (!options.IncludeFields) throw new NotSupportedException();
            return (T)Read(typeof(T), json);
        }

        static object Read(Type type, string json)
        {
            var result = Activator.CreateInstance(type);
            foreach (var field in type.GetFields())
            {
                var value = Regex.Match(json, "\"" + field.Name + "\":(\"([^\"]*)\"|\\[(.*)\\]|[^,}]+)");
                if (!value.Success) continue;
                if (field.FieldType == typeof(string)) field.SetValue(result, value.Groups[2].Value);
                else if (field.FieldType == typeof(long)) field.SetValue(result, long.Parse(value.Groups[1].Value));
                else if (field.FieldType == typeof(bool)) field.SetValue(result, value.Groups[1].Value == "true");
                else
                    foreach (Match item in Regex.Matches(value.Groups[3].Value, "{[^}]*}"))
                        ((IList)field.GetValue(result)).Add(Read(field.FieldType.GetGenericArguments()[0], item.Value));
            }
            return result;
        }
    }
}
